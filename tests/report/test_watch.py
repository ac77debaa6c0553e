"""A network that still runs, in the replay page."""

import threading
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from playwright.sync_api import Browser

from roamcast.report.replay.data import replay_data
from roamcast.report.replay.page import replay_page
from roamcast.report.replay.recordings import Recording, open_live
from roamcast.report.replay.server import ReplayServer
from roamcast.trace.files import TraceWriter, write_about
from roamcast.trace.recorder import Recorder
from roamcast.trace.schema import Record

HALF_S = 6.0


def before_and_after(table: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Positions are there from the start, as an emulation writes them; the rest as it happens."""
    early = pc.or_(pc.less(table["t"], pa.scalar(HALF_S)), pc.equal(table["kind"], pa.scalar("position")))
    return table.filter(early), table.filter(pc.invert(early))


def test_an_emulation_is_as_long_as_what_has_happened(line: Recording, tmp_path: Path) -> None:
    first, rest = before_and_after(line.trace)
    writer = TraceWriter(tmp_path)
    write_about(tmp_path, msgspec.json.encode(line.known.run))
    writer.append(first.to_batches())
    assert HALF_S - 2 < replay_data(open_live(tmp_path)).found.duration_s < HALF_S
    writer.append(rest.to_batches())
    assert replay_data(open_live(tmp_path)).found.duration_s == 12.0


def test_live_nodes_are_one_run_that_is_over_when_all_have_ended(tmp_path: Path) -> None:
    def rows(*records: Record) -> list[pa.RecordBatch]:
        recorder = Recorder("roamcast")
        for record in records:
            recorder.add(record)
        return list(recorder.batches())

    writers = [TraceWriter(tmp_path / name) for name in ("1", "2")]
    writers[0].append(rows(Record(1e9, "subscribed", 1, category="topics", detail="a")))
    writers[0].append(rows(Record(1e9 + 5, "end", count=1)))
    writers[1].append(rows(Record(1e9 + 1, "subscribed", 2, category="topics", detail="a")))
    assert "end" not in open_live(tmp_path).trace["kind"].to_pylist()
    assert replay_data(open_live(tmp_path)).found.nodes == 2
    writers[1].append(rows(Record(1e9 + 6, "end", count=1)))
    assert open_live(tmp_path).trace["kind"].to_pylist().count("end") == 2


def test_the_page_follows_the_network_until_it_is_over(browser: Browser, line: Recording) -> None:
    first, _ = before_and_after(line.trace)
    early = replay_data(Recording(line.known, first, [line.known])).packed
    mishaps: list[str] = []
    with ReplayServer(replay_page(early, live=True)) as server:
        server.recording = replay_data(line).packed.encode()
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        page = browser.new_page(viewport={"width": 1200, "height": 800})
        page.on("pageerror", lambda error: mishaps.append(str(error)))
        page.on("console", lambda message: mishaps.append(message.text) if message.type == "error" else None)
        page.goto(server.url)
        page.wait_for_selector("html[data-ready]")
        assert page.locator("#subtitle").inner_text().startswith("live")
        page.evaluate("replay.select({ kind: 'node', node: 2 })")
        for _ in range(500):
            if page.evaluate("replay.recording.header.is_over"):
                break
            page.wait_for_timeout(10)
        else:
            pytest.fail("the page never asked for more")
        assert page.locator("#subtitle").inner_text().startswith("over")
        assert page.evaluate("[replay.recording.duration, replay.selection.node, replay.playing]") == [12, 2, True]
        page.close()
        server.shutdown()
        thread.join()
    assert mishaps == []
