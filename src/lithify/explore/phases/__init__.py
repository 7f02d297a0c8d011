"""The four phases of exploration: macro rules, mapping to the machine, parameters, code generation.

candidates = explore(term, parameters, model)      # of any program
print(candidates.funnel)                           # what each filter dropped
search(candidates, ...)                            # `lithify.explore.search`
"""

from lithify.explore.phases.candidates import PhaseCandidates, Plan
from lithify.explore.phases.funnel import Funnel, Stage
from lithify.explore.phases.run import Limit, explore

__all__ = ["Funnel", "Limit", "PhaseCandidates", "Plan", "Stage", "explore"]
