"""How each table is printed: its title, its columns, and what a reader must know beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["LAYOUTS", "Column", "Layout"]

Kind = Literal["text", "count", "rate", "number", "points", "ratio", "p"]


@dataclass(frozen=True, slots=True)
class Column:
    """One printed column.

    Attributes:
        heading: Its heading.
        key: The column of the table.
        kind: `rate` is percent with its interval, `number` and `points` (signed) likewise, `ratio` an odds ratio with
            its interval.
    """

    heading: str
    key: str
    kind: Kind = "rate"


@dataclass(frozen=True, slots=True)
class Layout:
    """One printed table."""

    title: str
    columns: tuple[Column, ...]
    note: str = ""


def _counts(*pairs: tuple[str, str]) -> tuple[Column, ...]:
    return tuple(Column(heading, key, "count") for heading, key in pairs)


SETTING = Column("setting", "setting", "text")
SETTINGS_SHARE = (
    "The row over all settings resamples whole questions for its interval; its p takes settings as independent."
)

LAYOUTS: dict[str, Layout] = {
    "table1": Layout(
        "Table 1. Errors by condition",
        (
            SETTING,
            *_counts(("names-only errors", "names_errors"), ("of", "names_n")),
            Column("rate (%)", "names_rate_pct"),
            Column("mean of families (%)", "names_family_mean_pct"),
            *_counts(("profiles errors", "profiles_errors"), ("of", "profiles_n")),
            Column("rate (%)", "profiles_rate_pct"),
            *_counts(("off-option, names", "names_off_option"), ("off-option, profiles", "profiles_off_option")),
        ),
        "An answer off the options counts as an error.",
    ),
    "table2": Layout(
        "Table 2. Errors by probe answers",
        (
            SETTING,
            Column("errors (%)", "pairwise_hall_pct"),
            Column("both probes right (%)", "both_probes_correct_pct"),
            Column("errors given both (%)", "hall_given_both_pct"),
            Column("errors given not both (%)", "hall_given_not_both_pct"),
            Column("Fisher p", "not_both_over_both_fisher_p", "p"),
            Column("known-fact errors (%)", "known_fact_hall_pct"),
            Column("probe-absent errors (%)", "probe_absent_hall_pct"),
        ),
    ),
    "table4": Layout(
        "Table 4. Answers by probe state",
        (
            SETTING,
            *(
                column
                for state in ("both", "one", "neither")
                for column in (
                    *_counts((f"knows {state}, right", f"{state}_correct"), ("wrong", f"{state}_wrong")),
                    Column("wrong (%)", f"{state}_wrong_rate_pct"),
                )
            ),
        ),
    ),
    "table5": Layout(
        "Table 5. One probe right: which one was missed",
        (
            SETTING,
            *_counts(("eliminative missed", "n_missing_elim")),
            Column("errors (%)", "hall_elim_missed_pct"),
            *_counts(("compatibility missed", "n_missing_compat")),
            Column("errors (%)", "hall_compat_missed_pct"),
            Column("gap (points)", "gap_pp", "points"),
            Column("odds ratio", "derived_counts.odds_ratio", "number"),
            Column("Fisher p", "derived_counts.fisher_p_two_sided", "p"),
        ),
        "Read with the table of probe polarity: where the right answer to every eliminative probe is yes, missing it "
        "is the same as answering no to both.",
    ),
    "probe_bias": Layout(
        "Beside Table 5. Right answers and given answers of the probes",
        (
            SETTING,
            Column("eliminative: yes is right (%)", "eliminative_gold_yes_pct"),
            Column("said yes (%)", "eliminative_said_yes_pct"),
            Column("compatibility: yes is right (%)", "compatibility_gold_yes_pct"),
            Column("said yes (%)", "compatibility_said_yes_pct"),
            Column("eliminative missed: no to both (%)", "missed_elim_said_no_twice_pct"),
            Column("compatibility missed: yes to both (%)", "missed_compat_said_yes_twice_pct"),
        ),
    ),
    "polarity": Layout(
        "Beside Table 5. The same by polarity of the eliminative probe",
        (
            SETTING,
            Column("right eliminative answer", "eliminative_gold", "text"),
            *_counts(("questions", "questions"), ("eliminative missed", "n_missing_elim")),
            Column("errors (%)", "hall_elim_missed_pct"),
            *_counts(("compatibility missed", "n_missing_compat")),
            Column("errors (%)", "hall_compat_missed_pct"),
            Column("gap (points)", "gap_pp", "points"),
        ),
        "An asymmetry that stands in one polarity only is a liking for yes or no.",
    ),
    "table6": Layout(
        "Table 6. Questions that every setting misses",
        (
            Column("question", "question_id", "text"),
            Column("correct candidate", "correct_name", "text"),
            Column("shortcut candidate", "shortcut_name", "text"),
            Column("family", "family", "text"),
            *_counts(("settings", "settings")),
        ),
    ),
    "consensus": Layout(
        "Beside Table 6. Questions by the number of settings that miss them",
        (
            *_counts(("settings wrong", "settings_wrong"), ("questions", "observed")),
            Column("expected, independent", "expected_independent", "number"),
            Column("expected, one difficulty", "expected_one_difficulty", "number"),
            Column("p, as many or more wrong, independent", "p_at_least_independent", "p"),
            Column("p, one difficulty", "p_at_least_one_difficulty", "p"),
        ),
        "One difficulty: log-odds of an error are a setting's intercept plus a normal difficulty of the question, "
        "fitted to these records; its p ignores that it was fitted.",
    ),
    "consensus_families": Layout(
        "Beside Table 6. Relation families",
        (
            Column("family", "family", "text"),
            *_counts(
                ("questions", "questions"),
                ("missed by all", "missed_by_all"),
                ("by one or more", "missed_by_at_least_one"),
            ),
            Column("settings wrong, mean", "mean_settings_wrong", "number"),
        ),
    ),
    "error_overlap": Layout(
        "Beside Table 6. Errors in common of two settings",
        (
            Column("first", "first", "text"),
            Column("second", "second", "text"),
            *_counts(("both wrong", "both_wrong")),
            Column("expected, independent", "expected_independent", "number"),
            Column("expected, one difficulty", "expected_one_difficulty", "number"),
            Column("observed / independent", "ratio_to_independent", "number"),
            Column("phi", "phi", "number"),
        ),
    ),
    "table7": Layout(
        "Table 7. Probe-underdetermined cases",
        (
            SETTING,
            *_counts(("n", "n_underdetermined")),
            Column("of questions (%)", "pct_of_questions"),
            Column("accuracy (%)", "accuracy_pct"),
            Column("errors (%)", "hall_pct"),
            Column("no to both (%)", "both_predicted_false_pct"),
            Column("yes to both (%)", "both_predicted_true_pct"),
            Column("one yes, one no (%)", "predictions_differ_pct"),
        ),
        "One yes and one no can only stand here where the right answers of the two probes are the same.",
    ),
    "table8": Layout(
        "Table 8. Choice of the more famous candidate in these cases",
        (
            SETTING,
            *_counts(("n without ties", "n_non_tie"), ("ties", "n_tie"), ("off-option", "n_off_option")),
            Column("chooses the more famous (%)", "chooses_more_famous_pct"),
            Column("exact p against 50 %", "p_exact_two_sided", "p"),
        ),
    ),
    "table9": Layout(
        "Table 9. Direction of fame",
        (
            SETTING,
            Column("errors, wrong not more famous (%)", "hall_wrong_not_more_famous_pct"),
            Column("errors, wrong more famous (%)", "hall_wrong_more_famous_pct"),
            Column("odds ratio", "derived.odds_ratio", "number"),
            Column("Fisher p", "derived.fisher_p", "p"),
            Column("wrong more famous among errors (%)", "wrong_more_famous_among_hall_pct"),
            Column("among all (%)", "base_rate_pct"),
        ),
        "Fame is a property of a name, not of a name with a relation: read it beside relation-specific priors.",
    ),
    "fame_base_rate": Layout(
        "Beside Table 9. The wrong candidate's fame among errors against its base rate, by question",
        (
            SETTING,
            *_counts(("questions", "questions"), ("errors", "errors")),
            Column("base rate (%)", "base_rate_pct", "number"),
            Column("among errors (%)", "among_errors_pct"),
            Column("p", "p", "p"),
            Column("Holm", "p_holm", "p"),
        ),
    ),
    "fame": Layout(
        "Beside Table 9. A candidate in the top 1 % by fame",
        (
            SETTING,
            *_counts(("wrong more famous", "n_wrong_more_famous")),
            Column("%", "pct", "number"),
            *_counts(("questions with one", "n_top1pct")),
            Column("errors there (%)", "top1.in_top1_pct"),
            Column("errors elsewhere (%)", "top1.rest_pct"),
            Column("Fisher p", "top1.fisher_p", "p"),
        ),
    ),
    "fame_beside_priors": Layout(
        "Beside Table 9. Fame and relation-specific priors",
        (
            SETTING,
            Column("predictor", "predictor", "text"),
            *_counts(("n", "n")),
            Column("odds ratio alone", "odds_ratio", "ratio"),
            Column("p", "p", "p"),
            Column("within strata of the other", "odds_ratio_within", "ratio"),
            Column("p", "p_within", "p"),
        ),
    ),
    "ranking_of_errors": Layout(
        "What tells missed questions from others",
        (SETTING, Column("predictor", "predictor", "text"), *_counts(("n", "n")), Column("AUROC", "auroc", "number")),
    ),
    "cooccurrence": Layout(
        "Errors by co-occurrence of the two candidates",
        (
            SETTING,
            *_counts(("from", "from"), ("to", "to"), ("n", "n"), ("errors", "errors")),
            Column("errors (%)", "hall_pct"),
        ),
    ),
    "h6": Layout(
        "H.6. Right answers by what the model knows",
        (
            SETTING,
            *_counts(("right answers", "n_correct"), ("both probes right", "correct_with_both")),
            Column("both right (%)", "correct_in_both_pct"),
            Column("for a reason the model does not have (%)", "correct_without_both_pct"),
        ),
    ),
    "table10": Layout(
        "Table 10. Confidence",
        (
            SETTING,
            *_counts(("n", "n")),
            Column("right answers", "conf_correct", "number"),
            Column("wrong answers", "conf_hallucinated", "number"),
            Column("gap", "gap", "points"),
            Column("AUROC", "auroc", "number"),
            Column("Brier", "brier", "number"),
            Column("accuracy (%)", "accuracy_pct", "number"),
            Column("mean confidence", "mean_confidence", "number"),
        ),
        "AUROC: chance that a right answer has the higher confidence; 0.5 tells nothing apart.",
    ),
    "calibration": Layout(
        "Beside Table 10. Calibration",
        (
            SETTING,
            *_counts(("confidence from", "from"), ("to", "to"), ("n", "n")),
            Column("mean confidence", "confidence", "number"),
            Column("right (%)", "accuracy_pct"),
        ),
    ),
    "table11": Layout(
        "Table 11. Everyday items",
        (
            SETTING,
            *_counts(("errors", "errors"), ("of", "n")),
            Column("rate (%)", "rate_pct"),
            Column("mean of families (%)", "family_mean_pct"),
            *_counts(("off-option", "off_option")),
        ),
    ),
    "everyday": Layout(
        "Beside Table 11. Everyday items by aspect, family and kind of constraint",
        (
            SETTING,
            Column("by", "by", "text"),
            Column("value", "value", "text"),
            *_counts(("errors", "errors"), ("of", "n")),
            Column("rate (%)", "rate_pct"),
        ),
    ),
    "settings_compared": Layout(
        "Settings compared on the same questions",
        (
            Column("condition", "condition", "text"),
            Column("first", "first", "text"),
            Column("second", "second", "text"),
            *_counts(("n", "n"), ("only first wrong", "only_first_wrong"), ("only second wrong", "only_second_wrong")),
            Column("difference (points)", "difference_pp", "points"),
            Column("McNemar p", "p", "p"),
            Column("Holm", "p_holm", "p"),
        ),
    ),
    "associations": Layout(
        "Errors in one group of questions against another",
        (
            Column("table", "table", "text"),
            Column("compared", "compared", "text"),
            SETTING,
            *_counts(("n", "n")),
            Column("odds ratio", "odds_ratio", "ratio"),
            Column("p", "p", "p"),
            Column("Holm", "p_holm", "p"),
        ),
        SETTINGS_SHARE,
    ),
    "first_option": Layout(
        "The first option",
        (
            SETTING,
            Column("condition", "condition", "text"),
            *_counts(("n", "n")),
            Column("first taken (%)", "first_pct"),
            Column("y* stood first (%)", "correct_first_pct"),
            Column("first taken, balanced (%)", "first_balanced_pct", "number"),
            Column("errors, y* first (%)", "error_correct_first_pct"),
            Column("errors, y_s first (%)", "error_shortcut_first_pct"),
            Column("test", "test", "text"),
            Column("p", "p", "p"),
            Column("Holm", "p_holm", "p"),
        ),
    ),
}
