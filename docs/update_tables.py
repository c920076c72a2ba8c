#!/usr/bin/env python3
"""Writes what `shardwise validate` prints into the tables of accuracy.md, accuracy-memory.md and
blind-tests.md, and its closing lines into the first block of the former two.

    shardwise validate > validate.txt
    shardwise validate --left-out > left-out.txt
    docs/update_tables.py validate.txt [left-out.txt]

What a source's median was before stays; a source that is new gets its own figure there, to be
overwritten by hand with what the first forecast gave.
"""
import pathlib
import re
import sys

docs = pathlib.Path(__file__).resolve().parent


def rows(text):
    """{source: (time, memory)}, each (records, bias, median, p90) or None."""
    found = {}
    for line in text.splitlines():
        if line.startswith('all runs') or '|' not in line or line.startswith('source'):
            if found and line.startswith('all runs'):
                break
            continue
        left, right = line.split('|', 1)
        source, *time = left.split()
        sides = []
        for count, *figures in (time, right.split()):
            sides.append(None if int(count) == 0 else (int(count), *map(float, figures)))
        found[source] = sides
    return found


def is_ours(source):
    return source.startswith('oracle')


def update(page, side, line_of):
    text = page.read_text()
    head = re.search(r'^\| source \| records \|.*\n\|[-|]+\n', text, re.M)
    end = text.index('\n\n', head.end())
    before = {cells[1]: cells[3] for cells in
              ([c.strip() for c in l.split('|')] for l in text[head.end():end].splitlines())}
    lines = []
    for source, sides in printed.items():
        if sides[side] is None or is_ours(source):
            continue
        lines.append(line_of(source, before.get(source), *sides[side]))
    page.write_text(text[:head.end()] + '\n'.join(lines) + text[end:])


def line(source, before, count, bias, median, p90):
    signed = '0.0' if abs(bias) < 0.05 else f'{bias:+.1f}'
    return f'| {source} | {count} | {before or f"{median:.1f}"} | {median:.1f} | {signed} | {p90:.1f} |'


def update_head(page, *figures):
    """The first ``` block: the lines of `validate` that begin with these words, a part a line."""
    printed_now = pathlib.Path(sys.argv[1]).read_text().splitlines()
    lines = []
    for figure in figures:
        whole = next(l for l in printed_now if l.startswith(figure))
        first, *others = whole.split('; ')
        lines += [first] + [' ' * 16 + other for other in others]
    text = page.read_text()
    block = '```\n' + '\n'.join(lines) + '\n```\n'
    page.write_text(re.sub(r'^```\n.*?^```\n', lambda _: block, text, count=1, flags=re.M | re.S))


def update_blind(page):
    """Columns 5 and 7, "now", for the sources that a line names in backquotes."""
    def now(match):
        cells = match[0].split('|')
        sources = re.findall(r'`(\w+)`', cells[2])
        for cell, side in ((5, 0), (7, 1)):
            known = [printed[s][side] for s in sources if printed[s][side]]
            cells[cell] = f" {', '.join(f'{figures[2]:.1f}' for figures in known)} "
        return '|'.join(cells)
    text = page.read_text()
    page.write_text(re.sub(r'^\| (?:cards|\d+) \| `.*$', now, text, flags=re.M))


printed = rows(pathlib.Path(sys.argv[1]).read_text())
update(docs / 'accuracy.md', 0, line)
update(docs / 'accuracy-memory.md', 1, line)
update_head(docs / 'accuracy.md', 'step time')
update_head(docs / 'accuracy-memory.md', 'peak memory', 'out of memory')
update_blind(docs / 'blind-tests.md')

if len(sys.argv) > 2:
    page = docs / 'fitted.md'
    text = page.read_text()
    block = re.search(r'^```\n.*?^```\n', text, re.M | re.S)
    printed_now = pathlib.Path(sys.argv[2]).read_text().strip('\n')
    page.write_text(text[:block.start()] + '```\n' + printed_now + '\n```\n' + text[block.end():])
