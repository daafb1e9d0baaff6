"""The papers' forms of the mechanisms. ``docs/papers.md`` is made from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from margrave.models import (
    AnnealedFit,
    AnswersFit,
    GeneratorFit,
    GeneticFit,
    GraphicalFit,
    GUMFit,
    LatentClassFit,
    LeastSquaresFit,
    MaxEntropyFit,
    NetworkFit,
    ParticleFit,
    RelaxedFit,
)


@dataclass(frozen=True)
class PublishedForm:
    """The form that a paper gives a mechanism.

    Args:
        paper: Its authors, and the year.
        parameters: The parameters that differ from the mechanism's defaults. Numbers of rounds are
            examples where papers tune them.
        departures: What still differs from the paper.
        needs: Names of parameters that the paper leaves to its user.
        tuned: Names of parameters that the paper tunes: their values do not change the form.
    """

    paper: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    departures: str = "none known"
    needs: tuple[str, ...] = ()
    tuned: tuple[str, ...] = ()

    @property
    def open_parameters(self) -> frozenset[str]:
        """The parameters whose values do not change the form: also the inputs, and the size of the model."""
        inputs = {"workload", "queries", "public", "constraints", "max_model_mb"}
        return frozenset({*inputs - self.parameters.keys(), *self.needs, *self.tuned})


PGM = GraphicalFit(steps=16, empty_below=0.0, rake=False)
NETWORK = GeneratorFit(
    hidden=(512, 1024, 1024),
    rate=1e-4,
    active_threshold=0.5,
    resample=True,
    kl_weight=0.0,
    empty_below=0.0,
)
SEARCH = GeneticFit(
    population=2,
    records=2000,
    generations=200_000,
    window=1000,
    tolerance=1e-4,
    one_way_weight=0.0,
    init_from_columns=False,
    empty_below=0.0,
)
QUERIES = {"granularity": "query"}
TEN_BY_TEN = {**QUERIES, "rounds": 10, "queries_per_round": 10}
#: The forms of each mechanism, by its name. A mechanism without one is the library's own.
PUBLISHED_FORMS: Mapping[str, tuple[PublishedForm, ...]] = {
    "aim": (
        PublishedForm(
            "McKenna, Mullins, Sheldon, Miklau 2022",
            {
                "penalty": "full",
                "column_error": None,
                "shortlist": 0,
                "fit": replace(PGM, weights="scale"),
            },
            "the last fit has no warm start; scores of large models use synthetic rows of the model",
        ),
    ),
    "mst": (
        PublishedForm(
            "McKenna, Miklau, Sheldon 2021",
            {"max_model_mb": 1e6, "fit": PGM},
            "columns of constraints do not merge rare codes",
        ),
    ),
    "privbayes": (
        PublishedForm(
            "Zhang, Cormode, Procopiuc, Srivastava, Xiao 2017",
            {
                "score": "dependence",
                "network_share": Fraction(3, 10),
                "one_way_share": Fraction(0),
                "theta": 4.0,
                "max_parents": 15,
                "fit": NetworkFit(clip=True),
            },
            "zCDP and Gaussian noise instead of pure DP and Laplace noise; the score R in records "
            "for all tables (paper: F for binary ones), without taxonomies; numbers of parents and "
            "cells are bounded, and columns without parents do not compete; a private row count is "
            "measured first; marginals inside others are not measured, and all that contain a "
            "family estimate it; parents without counts leave the column's own distribution (paper:"
            " a uniform one); records are rounded, not drawn independently",
        ),
        PublishedForm(
            "McKenna, Sheldon, Miklau 2019 (PrivBayes+PGM)",
            {
                "score": "dependence",
                "network_share": Fraction(3, 10),
                "one_way_share": Fraction(0),
                "theta": 4.0,
                "max_parents": 15,
                "fit": PGM,
            },
            "as above, up to the marginals; the constants are those of PrivBayes (their example: "
            "half of the budget for the network, and theta = 1)",
        ),
    ),
    "mwem-pgm": (
        PublishedForm(
            "McKenna et al. 2022, Algorithm 1",
            {"measure_one_way": False, "max_model_mb": None, "fit": PGM},
            "scores use the weights of the workload",
            tuned=("rounds",),
        ),
        PublishedForm(
            "Runs of McKenna et al. 2022",
            {
                "measure_one_way": False,
                "max_model_mb": 25.0,
                "growing": True,
                "alpha": Fraction(9, 10),
                "fit": PGM,
            },
            "scores use the weights of the workload; if no marginal of it is within the limit, a column is measured",
        ),
        PublishedForm(
            "Appendix F of McKenna et al. 2022, relaxed projection",
            {
                "measure_one_way": False,
                "max_model_mb": None,
                "fit": RelaxedFit(active_threshold=0.0, steps=1000, empty_below=0.0),
            },
            "the number of rounds is the number of columns (paper: the best of several)",
            tuned=("rounds",),
        ),
    ),
    "privmrf": (
        PublishedForm(
            "Cai, Lei, Wei, Xiao 2021",
            {"ways": 6, "noisy_scores": True, "max_model_mb": 400.0, "fit": PGM},
            "zCDP instead of the analytic Gaussian mechanism; the row count has 1/50 of the budget "
            "(their code: 1/1000); no limit for a single clique of the graph (1e7 cells), no "
            "marginals of 7 to 10 binary columns, no hierarchies of large columns; no marginals of "
            "more than `max_cells` = 10,000 cells, and none of a size of which the table has more "
            "than 30,000: six columns up to a table of 19, five up to 22, four up to 30, three up "
            "to 57; all fits stop at the same tolerance",
        ),
    ),
    "mwem": (
        PublishedForm(
            "Hardt, Ligett, McSherry 2012",
            {**QUERIES, "passes": 0, "average": True},
            "Gaussian instead of Laplace noise; the average is over the weights after each round "
            "(paper: before each)",
            tuned=("rounds",),
        ),
        PublishedForm(
            "Liu, Vietri, Wu 2021 (with past answers)",
            {**QUERIES, "rounds": 100, "at_once": True},
            "a round's own answer counts once (their code: twice). The default passes over all "
            "answers up to 100 times per round, and its errors equal those of PEP",
            tuned=("rounds",),
        ),
    ),
    "pep": (
        PublishedForm(
            "Liu, Vietri, Wu 2021",
            {**QUERIES, "rounds": 50},
            "gamma is the paper's bound on all noise at once, for Gaussian instead of Laplace "
            "noise; it follows from the number of rounds. A round starts from the weights of the previous"
            " one, as in the authors' code (Algorithm 2: from uniform weights); repeated answers "
            "of a query count as their mean",
            tuned=("rounds",),
        ),
    ),
    "gem": (
        PublishedForm(
            "Liu, Vietri, Wu 2021",
            {**QUERIES, "rounds": 100, "fit": NETWORK},
            tuned=("rounds",),
        ),
    ),
    "rap": (
        PublishedForm(
            "Aydore et al. 2021",
            {**TEN_BY_TEN, "fit": RelaxedFit(clip=True, active_threshold=0.0, empty_below=0.0)},
            "queries are selected one after the other by the exponential mechanism (equal to "
            "report-noisy-max with Gumbel noise); the release has a distribution, not the relaxed"
            " records",
            tuned=("rounds", "queries_per_round"),
        ),
        PublishedForm(
            "Liu, Vietri, Wu 2021 (RAP^softmax)",
            {**TEN_BY_TEN, "fit": RelaxedFit(active_threshold=0.0, steps=1000, empty_below=0.0)},
            "as above, except that the records are distributions already; the steps are those of "
            "the authors' code, which stops earlier if the loss is constant",
            tuned=("rounds", "queries_per_round"),
        ),
    ),
    "rap-plus": (
        PublishedForm(
            "Vietri, Archambeau, Aydore, Brown, Kearns, Roth, Siva, Tang, Wu 2022",
            {
                "epochs": 50,
                "fit": AnnealedFit(
                    components=1000,
                    rate=6e-3,
                    logit_rate=3e-3,
                    slope=2.0,
                    steps=2000,
                    doublings=10,
                    tolerance=1e-4,
                ),
            },
            "thresholds count the middles of bins, in one or two numbers (paper: all columns, not "
            "binned), of the classes of `label` if it has two codes, and are drawn anew in each round, with boundaries "
            "inside the unit cube; marginals of pairs without the label (`workload` can name it); "
            "each query is measured once (their code: again in every round); the penalty of a "
            "marginal is its noise; a private row count is measured first; softmax instead of "
            "sparsemax; step sizes fall by 1 / sqrt(2) with each slope (paper: by half)",
            tuned=("label",),
        ),
    ),
    "dual-query": (
        PublishedForm(
            "Gaboardi et al. 2014",
            {"eta": 2.0, "samples": 25},
            "zCDP as in Liu, Vietri, Wu 2021; the budget goes to the rounds in proportion to (t −"
            " 1)²; records come from a search of at most `max_nodes` nodes, not from an exact "
            "solver; eta is adjusted to the budget, for at least two rounds (`eta_used` in the "
            "certificate)",
            tuned=("eta", "samples", "rounds"),
        ),
    ),
    "fem": (
        PublishedForm(
            "Vietri et al. 2020",
            {"max_nodes": 200},
            "the paper states neither rounds, `samples` nor `sigma`; records come from a search "
            "of at most `max_nodes` nodes",
            tuned=("samples", "rounds", "sigma"),
        ),
    ),
    "pmw-pub": (
        PublishedForm(
            "Liu, Vietri, Steinke, Ullman, Wu 2021",
            {**QUERIES, "rounds": 100, "shrink": False, "anneal": False, "at_once": True},
            "as `mwem`; the rounds are in the grid of Liu, Vietri, Wu 2021 for MWEM with past answers",
            needs=("public",),
            tuned=("rounds",),
        ),
    ),
    "pep-pub": (
        PublishedForm(
            "Liu, Vietri, Wu 2021",
            {**QUERIES, "rounds": 50, "shrink": False, "anneal": False},
            "as `pep`",
            needs=("public",),
            tuned=("rounds",),
        ),
    ),
    "gem-pub": (
        PublishedForm(
            "Liu, Vietri, Wu 2021",
            {**QUERIES, "rounds": 100, "fit": NETWORK},
            "the number of steps on public data (`pretraining`) is margrave's",
            needs=("public",),
            tuned=("rounds",),
        ),
        *(
            PublishedForm(
                f"Fuentes et al. 2024 ({how} rounds)",
                {**QUERIES, "rounds": rounds, "fit": NETWORK},
                "as above; the paper shows two numbers of rounds, on TITANIC 1 and 5",
                needs=("public",),
            )
            for how, rounds in (("few", 5), ("many", 150))
        ),
    ),
    "jam-pgm": (
        PublishedForm(
            "Fuentes et al. 2024",
            {"equal_weights": True, "rounds": 30, "fit": PGM},
            "the rounds are the default of the authors' code; "
            "a private row count is measured first; the open share of the model is the spent "
            "share of the budget, as in the paper's experiments (Algorithm 2 does not mention "
            "it); if the last round reads, the rest of the budget also measures that marginal; "
            "`refit` and draws use the real scales",
            needs=("public",),
            tuned=("rounds",),
        ),
    ),
    "napsu-mq": (
        PublishedForm(
            "Räisä, Jälkö, Kaski, Honkela 2023",
            {
                "connect_columns": False,
                "fit": MaxEntropyFit(reference="first", prior=10.0, queries="canonical"),
            },
            "all cells are measured, at the price of the canonical queries, and only these are used; the prior is on "
            "canonical queries, not on cells; a private row count follows from the cells of reference codes; "
            "columns in no marginal are measured too; chains run until they mix; the combining rules "
            "have a floor (`combine(floor=False)` has none)",
            needs=("workload",),
        ),
    ),
    "repeated": (
        PublishedForm(
            "Räisä, Jälkö, Kaski, Honkela 2023 (repeated PGM)",
            {},
            "each run selects its pairs anew with its own budget (paper: the marginals are given; "
            "`NAPSUMQ(workload=workload, connect_columns=False, fit=GraphicalFit())` as `mechanism` measures these); "
            "intervals follow the rule for independent runs (paper: Rubin's rules, "
            "`analyze(list(release.draws()), fit, n=rows)`)",
            tuned=("runs",),
        ),
    ),
    "privlcm": (
        PublishedForm(
            "Nixon, Barrientos, Reiter, Slavković 2022",
            {"fit": LatentClassFit(warmup=2500, max_sweeps=2500)},
            "zCDP and Gaussian noise instead of pure DP and geometric noise; a normal likelihood "
            "with the covariance of all pairs, over which the true counts are integrated (paper: "
            "true counts are sampled, and pairs are taken as independent); steps in logarithms for "
            "all parameters; four chains, which must mix",
        ),
    ),
    "private-gsd": (
        PublishedForm(
            "Liu, Tang, Vietri, Wu 2023",
            {"fit": SEARCH},
            '`adaptive=True, granularity="query"` has the rounds of the paper, with the '
            "exponential mechanism",
            tuned=("adaptive", "granularity", "rounds", "alpha"),
        ),
    ),
    "privpgd": (
        PublishedForm(
            "Donhauser, Abad, Hulkund, Yang 2024",
            {"fit": ParticleFit.of_paper()},
            "a step leaves out runs of 16 particles; the projection is on logits, exact for points on a line, and has "
            "fewer directions for marginals of more than 20,000 cells; discrete noise on shares of constraints; "
            "a share costs 1/25 of rho, which leaves the marginals more than the paper does",
        ),
        PublishedForm(
            "Donhauser, Abad, Hulkund, Yang 2024 (hiding)",
            {"constraint_fraction": Fraction(69, 200), "fit": ParticleFit.of_paper()},
            "as above, except that the marginals get what the paper leaves them at (2.5, 1e-5); for other budgets "
            "`PrivPGD.constraint_fraction_of_paper`; shares have slope 20 (paper: 5) unless `slope=5.0`",
        ),
    ),
    "privsyn": (
        PublishedForm(
            "Zhang, Wang, Li, Honorio, Backes, He, Chen, Zhang 2021",
            {"clique_columns": 3, "fit": GUMFit(passes=100, period=20, empty_below=0.0)},
            "cliques of at most three columns; half of the moved records are copies in every pass "
            "(the authors' code: in every second pass, else all); columns of one marginal are "
            "left out repeatedly; the search ends when no pair lowers the error (their code: by "
            "20,000 records)",
        ),
    ),
    "gaussian": (
        PublishedForm(
            "Zhang et al. 2021 (the split), McKenna et al. 2022 (as a baseline)",
            {"overlaps": False, "fit": AnswersFit()},
            "none known: noisy answers without records",
        ),
    ),
    "residual-planner": (
        PublishedForm(
            "Xiao, He, Zhang, Kifer 2023",
            {},
            "independent noise on all interactions, of which the fit uses what the paper measures; under "
            "replacement, and for columns of many codes, whole marginals are measured too; no objective for the "
            "largest variance",
        ),
    ),
    "hdmm": (
        PublishedForm(
            "McKenna, Miklau, Hay, Machanavajjhala 2018 and McKenna, Sheldon, Miklau 2019 (HDMM + PGM)",
            {"max_model_mb": None, "fit": PGM},
            "OPT_M alone, of the marginals below the workload; Gaussian instead of Laplace noise",
        ),
        PublishedForm(
            "McKenna, Miklau, Hay, Machanavajjhala 2018 (HDMM)",
            {"max_model_mb": None, "fit": LeastSquaresFit()},
            "as above",
        ),
    ),
    "independent": (
        PublishedForm(
            "McKenna et al. 2022 (as a baseline)",
            {"fit": PGM},
            "columns that constraints join are as independent as the constraints allow",
        ),
    ),
}
