"""The four phases of exploration: macro rules, mapping to the machine, parameters, code generation.

candidates = explore(term, parameters, model)      # of any program
print(candidates.funnel)                           # what each filter dropped
search(candidates, ...)                            # `lithify.explore.search`
"""

from lithify.explore.phases.candidates import DEFAULT, PhaseCandidates, Plan, lower_by
from lithify.explore.phases.funnel import Funnel, Stage
from lithify.explore.phases.run import Limit, explore

__all__ = ["DEFAULT", "Funnel", "Limit", "PhaseCandidates", "Plan", "Stage", "explore", "lower_by"]
