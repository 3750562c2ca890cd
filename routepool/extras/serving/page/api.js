// Questions to the server. Whatever goes wrong is a Refused whose message is one sentence.

export class Refused extends Error {
  constructor(message, status = 0, retryAfter = 1) {
    super(message);
    Object.assign(this, { status, retryAfter });
  }
}

let key = "";

export function useKey(given) {
  if (!/^[\x21-\x7e]+$/.test(given)) throw new Refused("A key is made of visible ASCII characters without spaces.");
  key = given;
}

export const hasKey = () => key !== "";

/** GET, or POST where there is a body; addresses are relative, so that a proxy may add a prefix. */
export async function ask(path, body, signal) {
  const headers = key ? { "X-API-Key": key } : {};
  const options = { headers, signal, cache: "no-store", credentials: "omit" };
  if (body) {
    headers["Content-Type"] = "application/json";
    Object.assign(options, { method: "POST", body: JSON.stringify(body) });
  }
  let response, answer;
  try {
    response = await fetch(path, options);
    answer = await response.json().catch(() => null);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused("The server does not answer; check that it is still running.");
  }
  if (response.ok && answer) return answer;
  const hasReason = typeof answer?.error === "string";
  const reason = hasReason ? answer.error : `the server answered ${response.status} without a reason`;
  throw new Refused(sentence(reason), response.status, Number(response.headers.get("Retry-After")) || 1);
}

function sentence(text) {
  const start = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(start) ? start : `${start}.`;
}
