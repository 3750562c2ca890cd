"""Folder <-> model: what a training run leaves behind, safe against crashes, full disks and damaged copies.

- RUN/config.json: settings, labels, calibration, provenance and `format_version`
- RUN/tokenizer.json: the vocabulary and how text becomes words
- RUN/model.safetensors: the weights
- RUN/manifest.json: size and SHA-256 of these three; a model with it is finished, one without is not
- RUN/README.md: the model card
- RUN/checkpoints/: where training goes on after an interruption
"""

from routepool.persistence.checkpoints import Checkpoint as Checkpoint
from routepool.persistence.checkpoints import latest_checkpoint as latest_checkpoint
from routepool.persistence.checkpoints import prune as prune
from routepool.persistence.checkpoints import write_checkpoint as write_checkpoint
from routepool.persistence.description import SavedModel as SavedModel
from routepool.persistence.folder import load_model as load_model
from routepool.persistence.saving import check_free as check_free
from routepool.persistence.saving import save_model as save_model
