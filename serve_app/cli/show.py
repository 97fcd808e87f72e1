"""Responses for a person at a terminal."""

from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

Response = dict[str, Any]


def passages(console: Console, response: Response) -> None:
    """Passages, best first, and how they were found."""
    for rank, passage in enumerate(response["passages"], 1):
        found = ", ".join(f"{p['skill']} {p['rank']}" for p in passage["provenance"])
        title = escape(passage["title"] or passage["document_id"])
        console.print(f"[bold]{rank}. {title}[/]  {passage['score']:.3f}  [dim]{found}[/]")
        console.print(f"   [dim]{escape(passage['document_id'])}[/]", soft_wrap=True)
        console.print(Padding(escape(_shortened(passage["text"])), (0, 0, 0, 3)))
    decision(console, response)


def answer(console: Console, response: Response) -> None:
    """An answer with its citations, and how it was found."""
    told = response["answer"]
    if told is None:
        console.print("[yellow]No answer:[/] the generator gave none, see what is missing.")
        decision(console, response)
        return
    places: dict[str, int] = {}
    for row in told.get("comparison") or [{"side": "", "sentences": told["sentences"]}]:
        if row["side"]:
            console.print(f"[bold]{escape(row['side'])}[/]")
        for sentence in row["sentences"]:
            marks = ""
            for citation in sentence["citations"]:
                marks += f"[{places.setdefault(citation['passage_id'], len(places) + 1)}]"
            console.print(f"{escape(sentence['text'].strip())} [cyan]{escape(marks)}[/]")
    if not told["sentences"]:
        console.print("[yellow]No answer:[/] the passages do not support one.")
    titles = {p["id"]: p["title"] or p["document_id"] for p in response["passages"]}
    for passage_id, number in places.items():
        name = escape(titles.get(passage_id, passage_id))
        console.print(f"  [cyan]\\[{number}][/] {name} [dim]{escape(passage_id)}[/]")
    console.print(f"[dim]{told['kind']}: sentences are quoted as they stand in the passages[/]")
    decision(console, response)


def decision(console: Console, response: Response) -> None:
    """Which plan was chosen and why, what is missing, and where the time went."""
    chosen = response["decision"]
    console.print(
        f"[bold]plan[/] {chosen['plan']}  [dim]{chosen['policy']} {chosen['policy_version']}, "
        f"propensity {chosen['propensity']:g}[/]"
    )
    console.print(f"[bold]why[/]  {escape(chosen['reason'])}")
    for missing in response["missing"]:
        text = f"{missing['subject']}: {missing['detail']}"
        console.print(f"[yellow]missing[/] {missing['reason']}  {escape(text)}")
    times = "  ".join(f"{name} {ms:.1f}" for name, ms in response["timings_ms"].items())
    console.print(f"[bold]ms[/]   {times}")
    if response.get("cached"):
        console.print("     kept from an earlier request; the stages are of that one:")
    for stage in response["stages"]:
        calls = ", ".join(
            f"{c['skill']} {c['ms']:.1f}" + ("" if c["status"] == "ok" else f" ({c['status']})")
            for c in stage["calls"]
        )
        console.print(f"     stage {stage['stage']}: {calls} -> {stage['num_hits']} passages")
    console.print(f"[dim]request {response['request_id']}[/]")


def experience(console: Console, response: Response) -> None:
    """The record of a request."""
    record = response["record"]
    console.print(f"[bold]{escape(record['query'] or '(text not kept)')}[/]")
    console.print(f"[dim]{record['at']}  {record['kind']}  collection {record['collection']}[/]")
    features = Table("feature", "value", title="what was seen in the query", title_justify="left")
    for name, value in record["features"].items():
        if value not in ("", [], None):
            features.add_row(name, escape(str(value)))
    console.print(features)
    stages = record["execution"].get("stages", [])
    decision(console, record | {"stages": stages})
    drops = Table("stage", "passage", "reason", "detail", title="dropped", title_justify="left")
    for stage in stages:
        for dropped in stage["dropped"]:
            drops.add_row(
                str(stage["stage"]),
                escape(dropped["passage_id"]),
                dropped["reason"],
                escape(dropped["detail"]),
            )
    if drops.row_count:
        console.print(drops)
    for signal in response["signals"]:
        console.print(f"signal {signal['kind']} {signal['value']:g}  [dim]{signal['at']}[/]")


def why_not(console: Console, response: Response) -> None:
    """Which stage lost a passage, and its rank in every arm."""
    console.print(f"[bold]{response['outcome']}[/]  {escape(response['detail'])}")
    steps = Table("stage", "skill", "outcome", "rank", "passes on", "detail")
    for step in response["steps"]:
        name = step["skill"] + (f" ({step['group']})" if step["group"] else "")
        rank, top_k = str(step["rank"] or ""), str(step["top_k"] or "")
        steps.add_row(
            str(step["stage"]), escape(name), step["outcome"], rank, top_k, escape(step["detail"])
        )
    if steps.row_count:
        console.print(steps)
    console.print(f"[dim]index version {response['index_version']}[/]")


def _shortened(text: str, most: int = 240) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= most else flat[: most - 1] + "…"
