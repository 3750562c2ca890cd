"""No check that scikit-learn runs on such an estimator is forgotten.

Those that never look at the data run here as they are (`AS_THEY_ARE`), those that cannot apply are listed with the
reason (`DO_NOT_APPLY`), all others are ported in the two files beside this one.
"""

import warnings
from typing import Any

import pytest
import sklearn
import test_sklearn_checks
import test_sklearn_checks_classifier
from sklearn.utils import estimator_checks
from support.tiny_classifier import tiny

from routepool import TextClassifier

AS_THEY_ARE = [
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_tags_renamed",
    "check_get_feature_names_out_error",
    "check_get_params_invariance",
    "check_mixin_order",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_set_params",
    "check_valid_tag_types",
]

DO_NOT_APPLY = {
    "check_array_api_input": "texts are no arrays of numbers",
    "check_class_weight_balanced_linear_classifier": "for linear classifiers: it compares coef_",
    "check_classifier_not_supporting_multiclass": "for classifiers of two classes only",
    "check_complex_data": "texts have no real part; check_dtype_object refuses numbers",
    "check_dataframe_column_names_consistency": "X has no columns",
    "check_estimator_sparse_tag": "a sparse matrix holds no strings; the two checks below refuse one",
    "check_estimators_partial_fit_n_features": "there is no partial_fit",
    "check_fit2d_1feature": "X is one-dimensional",
    "check_fit2d_predict1d": "X is one-dimensional; check_fit1d refuses two dimensions instead",
    "check_fit_non_negative": "a text is neither positive nor negative",
    "check_global_output_transform_pandas": "the same as check_set_output_transform_pandas with a global setting",
    "check_global_set_output_transform_polars": "the same as check_set_output_transform_polars with a global setting",
    "check_inplace_ensure_writeable": "strings cannot be changed; check_readonly_memmap_input covers read-only arrays",
    "check_n_features_in": "a text has no number of features, as for text vectorizers",
    "check_n_features_in_after_fitting": "the same",
    "check_non_transformer_estimators_n_iter": "for estimators with max_iter; here epochs, and n_iter_ is there too",
    "check_nonsquare_error": "for kernels",
    "check_param_validation": "for scikit-learn's own declarations; test_classifier.py has ours",
    "check_positive_only_tag_during_fit": "a text is neither positive nor negative",
    "check_sample_weight_equivalence_on_sparse_data": "a sparse matrix holds no strings",
    "check_sparsify_coefficients": "for linear classifiers",
    "check_transformer_get_feature_names_out_pandas": "X has no columns whose names could be remembered",
    "check_transformer_n_iter": "for estimators with max_iter",
    "check_transformer_preserve_dtypes": "strings in, numbers out",
    "check_transformers_unfitted_stateless": "the transformer is not stateless",
}


@pytest.mark.parametrize("check", AS_THEY_ARE)
def test_check_as_it_is(check: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        getattr(estimator_checks, check)("TextClassifier", tiny())


def ported() -> set[str]:
    names = {*vars(test_sklearn_checks), *vars(test_sklearn_checks_classifier)}
    return {name.removeprefix("test_") for name in names if name.startswith("test_check_")} | set(AS_THEY_ARE)


def test_at_least_45_checks_are_ported() -> None:
    upstream = {name for name in vars(estimator_checks) if name.startswith("check_")}
    assert len(ported() & upstream) >= 45
    assert not ported() & DO_NOT_APPLY.keys()
    assert DO_NOT_APPLY.keys() <= upstream


@pytest.mark.skipif(not sklearn.__version__.startswith("1.9."), reason="the list of checks is that of scikit-learn 1.9")
def test_every_check_that_scikit_learn_runs_on_such_an_estimator_is_ported_or_has_its_reason() -> None:
    class Numbers(TextClassifier):
        """As one that reads numbers, so that no check is left out for its input."""

        def __sklearn_tags__(self) -> Any:
            tags = super().__sklearn_tags__()
            tags.input_tags.two_d_array, tags.input_tags.one_d_array, tags.input_tags.string = True, False, False
            return tags

    runs = {
        getattr(check, "func", check).__name__
        for check in estimator_checks._yield_all_checks(Numbers(), legacy=True)  # noqa: SLF001
    }
    assert len(runs) > 45
    assert runs - ported() - DO_NOT_APPLY.keys() == set()
