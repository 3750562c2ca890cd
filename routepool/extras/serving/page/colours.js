// Colours that stay apart for colour-blind eyes (Okabe and Ito); numbers always stand beside them.

const PARTS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#8f7f00", "#7a5cc4"];
const STRONGEST = 50; // per cent: ink stays readable on it, in the light and in the dark

export const partColour = (part) => PARTS[part % PARTS.length];
export const strength = (share) => `${(STRONGEST * Math.min(1, Math.max(0, share))).toFixed(1)}%`;

/** From the strongest tint of one colour to that of another; "" is none. */
export function ramp(...colours) {
  const tints = colours.map((colour) => `color-mix(in srgb, ${colour || "transparent"} ${STRONGEST}%, transparent)`);
  return `linear-gradient(90deg, ${tints.join(", ")})`;
}
