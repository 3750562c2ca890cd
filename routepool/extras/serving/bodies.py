"""Bodies and answers: bodies are checked by these, and the OpenAPI description is made of them."""

import re
from collections.abc import Sequence
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from routepool.explaining import Explanation
from routepool.extras.serving.refusals import Refused

_SURROGATE = re.compile("[\ud800-\udfff]")


def _one_or_many(schema: dict[str, Any]) -> None:
    schema["oneOf"] = [{"required": ["text"]}, {"required": ["texts"]}]
    for name in ("text", "texts"):  # left out, not null
        item = schema["properties"][name]
        del item["default"]
        item.update(item.pop("anyOf")[0])


class TextsBody(BaseModel):
    """One text, or a list of them."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra=_one_or_many)

    text: str | None = Field(None, description="One text.", examples=["A fine day out."])
    texts: list[str] | None = Field(None, description="Texts; their results come in this order.")

    @model_validator(mode="after")
    def _has_either(self) -> Self:
        given = self.model_fields_set & {"text", "texts"}
        if len(given) != 1 or getattr(self, *given) is None:
            raise ValueError("wanted either text, a string, or texts, a list of strings")
        return self

    def checked(self, *, most: int, characters: int) -> Sequence[str]:
        """The texts, if they are not too many and none is too long."""
        texts = [self.text] if self.text is not None else self.texts or []
        if len(texts) > most:
            raise Refused(422, f"wanted at most {most} texts in a request, got {len(texts)}; send them in parts")
        for place, text in enumerate(texts):
            where = "text" if self.text is not None else f"texts[{place}]"
            if len(text) > characters:
                raise Refused(422, f"{where}: wanted at most {characters} characters, got {len(text)}; cut the text")
            if _SURROGATE.search(text):
                raise Refused(422, f"{where}: wanted Unicode text, got half of a surrogate pair; correct the escapes")
        return texts


class ExplainBody(TextsBody):
    """One text or a list, and what to explain."""

    method: str | None = Field(None, description="How importance is measured; /labels has the names.")
    label: str | None = Field(None, description="What words speak for; else each text's likeliest.")
    rounds: bool = Field(False, description="Also the weights of every round of routing.")


class ReadAnswer(BaseModel):
    """How much of one text was read, beside what came of it."""

    unread: int = Field(description="Words behind the model's limits, which it did not read.")
    known: int = Field(description="Words among those read that the model knows; with none the result means nothing.")


class PredictionAnswer(ReadAnswer):
    """What the model says of one text."""

    labels: list[str]
    probabilities: dict[str, float]


class EncodingAnswer(ReadAnswer):
    """The vector of one text."""

    vector: list[float]


class Predictions(BaseModel):
    """A prediction for each text, in their order."""

    results: list[PredictionAnswer]


class Explanations(BaseModel):
    """An explanation for each text, in their order; docs/explain.md has the fields."""

    results: list[Explanation]


class Encodings(BaseModel):
    """A vector for each text, in their order."""

    results: list[EncodingAnswer]


class AcceptedLimits(BaseModel):
    """What a request may hold."""

    body_bytes: int
    texts: int
    text_characters: int
    explained_texts: int
    explained_characters: int
    explained_cost: int


class ModelDescription(BaseModel):
    """The model that answers."""

    model: str
    labels: list[str]
    multi_label: bool
    aggregator: str
    capsules: int = Field(description="Parts of equal size that the vector is made of, whatever they are called.")
    part: str = Field(description="What one of them is called, such as capsule.")
    share_of: str = Field(description="The weights are shares of a word over the parts, of the text, or of nothing.")
    iterations: int
    depth: int
    methods: list[str]
    default_method: str
    limits: AcceptedLimits
    version: str


class State(BaseModel):
    """Of the server."""

    status: str


class Problem(BaseModel):
    """Why there is no result, in one sentence."""

    error: str
