"""Model folders on the Hugging Face hub: only the files of the model travel, checked like any folder's."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from huggingface_hub import HfApi, errors, snapshot_download

from routepool.errors import InputError
from routepool.persistence.folder import CARD, MANIFEST, NEEDED
from routepool.persistence.hubs import HUBS, Token

LIBRARY = "routepool"

# The first kind that fits: some are kinds of those below them.
_SENTENCES: tuple[tuple[type[Exception], str], ...] = (
    (errors.HFValidationError, "wanted a folder or a name such as 'someone/some-model', got neither; correct it"),
    (errors.GatedRepoError, "its owner must let you in first; ask on its page, then give your token"),
    (
        errors.RepositoryNotFoundError,
        "there is no such folder, and no such model on the hub that you may see; correct the name, or give a token",
    ),
    (errors.RevisionNotFoundError, "the model has no such revision; correct it, or leave it away for the newest"),
    (errors.LocalTokenNotFoundError, "the hub wants to know who you are; run hf auth login, or give a token"),
    (
        errors.LocalEntryNotFoundError,
        "there is no such folder, no copy in the cache, and the hub was not reached; connect, or correct the name",
    ),
    (errors.OfflineModeIsEnabled, "the hub is switched off by HF_HUB_OFFLINE; unset it and try again"),
)


class HuggingFace:
    """The Hugging Face hub, or where HF_ENDPOINT says."""

    def download(
        self,
        name: str,
        *,
        revision: str | None = None,
        token: Token = None,
        cache_dir: str | os.PathLike[str] | None = None,
        local_files_only: bool = False,
    ) -> Path:
        """The files that a model needs, in the cache of the hub's package."""
        with _one_sentence(name):
            found = snapshot_download(
                name,
                revision=revision,
                token=token,
                cache_dir=None if cache_dir is None else Path(cache_dir),
                local_files_only=local_files_only,
                allow_patterns=[MANIFEST, *NEEDED],
                library_name=LIBRARY,
            )
        folder = Path(str(found))
        if not (folder / MANIFEST).exists():
            raise InputError(f"{name}: wanted a model of routepool, got one without {MANIFEST}; correct the name")
        return folder

    def upload(
        self,
        folder: Path,
        name: str,
        *,
        revision: str | None = None,
        token: Token = None,
        private: bool | None = None,
        commit_message: str | None = None,
    ) -> str:
        """Make the repository if it is not there, put model and card in, and say where they are to be seen."""
        with _one_sentence(name):
            api = HfApi(token=token, library_name=LIBRARY)
            full_name = api.create_repo(name, private=private, exist_ok=True).repo_id
            if revision is not None:
                api.create_branch(full_name, branch=revision, exist_ok=True)
            done = api.upload_folder(
                repo_id=full_name,
                folder_path=folder,
                revision=revision,
                commit_message=commit_message or "Upload a routepool model",
                allow_patterns=[MANIFEST, *NEEDED, CARD],
            )
        return str(done.commit_url)


HUBS.register("huggingface")(HuggingFace())


@contextmanager
def _one_sentence(name: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        for kind, sentence in _SENTENCES:
            if isinstance(error, kind):
                raise InputError(f"{name}: {sentence}") from error
        if isinstance(error, OSError | errors.HTTPError):  # type: ignore[attr-defined]
            reason = " ".join(str(error).split())
            raise InputError(f"{name}: the hub did not do it ({reason:.200}); try again later") from error
        raise
