"""`lithify rules` and `lithify strategies`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lithify.cli.console import out
from lithify.lang.errors import LithifyError
from lithify.lang.spelling import choices

if TYPE_CHECKING:
    from rich.text import Text

    from lithify.rewrite import Example, Rule


def list_rules(family: str | None) -> None:
    """Every rule with its notation, by family."""
    from rich.text import Text

    from lithify.rules import FAMILIES, all_rules, family_of

    if family is not None and family not in FAMILIES:
        raise LithifyError(f"there is no family {family}", hint=choices(family, FAMILIES, "the families are"))
    shown = {name: rule for name, rule in all_rules().items() if family in (None, family_of(rule))}
    width = max(map(len, map(_titled, shown.values())))
    for each in FAMILIES if family is None else (family,):
        purpose = (FAMILIES[each].__doc__ or "").strip().splitlines()[0]
        out().print(Text.assemble((each, "bold"), (f"  {purpose}", "dim")))
        for rule in shown.values():
            if family_of(rule) == each:
                out().print(Text.assemble((f"  {_titled(rule):{width}}  ", "green"), rule.text))


def show_rule(name: str) -> None:
    """A rule's page: its notation, law, conditions, and examples before and after."""
    from rich.text import Text

    from lithify.rules import all_rules, family_of

    found = all_rules().get(name)
    if found is None:
        hint = choices(name, all_rules(), elsewhere="`lithify rules` lists them")
        raise LithifyError(f"there is no rule {name}", hint=hint)
    console = out()
    console.print(Text.assemble((_titled(found), "bold green"), (f"  ({family_of(found)})", "dim")))
    for title, text in (
        ("rule", found.text.replace(" -> ", "\n->  ", 1)),
        ("when", "\n".join(found.conditions) or "always"),
        ("law", " ".join(found.law.split())),
    ):
        console.print(_entry(title, text))
    for example in found.examples:
        console.print(_entry("example", _before_after(found, example)))


def list_strategies() -> None:
    """The named strategies, what each does, and which devices it is for."""
    from rich.text import Text

    from lithify.lowering import strategies

    found = strategies()
    width = max(map(len, found), default=0)
    for name, strategy in found.items():
        out().print(Text.assemble((f"{name:{width}}  ", "green"), f"{strategy.purpose}; {strategy.devices}"))


def _titled(rule: Rule) -> str:
    """The name with the parameters: `split-join(n)`."""
    shown = [f"{p}={rule.defaults[p]}" if p in rule.defaults else p for p in rule.parameters]
    return f"{rule.name}({', '.join(shown)})" if shown else rule.name


def _entry(title: str, text: str) -> Text:
    from rich.text import Text

    lines = text.splitlines() or [""]
    rest = "".join(f"\n{' ' * 10}{line}" for line in lines[1:])
    return Text.assemble((f"{title:10}", "bold"), lines[0] + rest)


def _before_after(rule: Rule, example: Example) -> str:
    """The example's program, and what the rule makes of it."""
    from lithify.lang.module import read_text

    definition = read_text(f"example = {example.program}", f"the example of {rule.name}")["example"]
    program = definition.elaborate()
    applied = rule(*example.arguments)
    from lithify.rewrite import topdown

    return f"{program.term}\n-> ({applied.name})\n{topdown(applied).apply(program.term)}"
