#!/usr/bin/env python3
"""Writes what `shardwise validate` prints into the tables of accuracy.md, accuracy-memory.md and
blind-tests.md, its closing lines into the first block of the former two, and into all three what
stands between "<!-- figures: NAME -->" and "<!-- end -->": counts over the runs and the tables.

    shardwise validate > validate.txt
    shardwise validate --json > validate.json
    shardwise validate --left-out > left-out.txt
    docs/update_tables.py validate.txt validate.json [left-out.txt]

What a source's median was before and the note in its last cell stay; a source that is new gets there
what blind-tests.md says that its first forecast gave, or today's figure, to be overwritten by hand.
"""
import json
import pathlib
import re
import statistics
import sys
import textwrap

docs = pathlib.Path(__file__).resolve().parent

# A line of the table of blind tests: the test, files of runs in backquotes, how many runs.
BLIND_ROW = r'^\| (cards|\d+) (\| `[^|]*\| \d+ \|.*)$'


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
    cells_of = {cells[1]: cells for cells in
                ([c.strip() for c in l.split('|')] for l in text[head.end():end].splitlines())}
    lines = []
    for source, sides in printed.items():
        if sides[side] is None or is_ours(source):
            continue
        known = cells_of.get(source)
        before, note = (known[3], known[7]) if known else (first(source, side), blind_test(source))
        lines.append(f'{line_of(source, before, *sides[side])} {note} |')
    page.write_text(text[:head.end()] + '\n'.join(lines) + text[end:])


def first(source, side):
    """What the first forecast of a blind test's only source was off by, as the page says it."""
    told = [cells[(2, 4)[side]] for _, cells in blind_rows() if cells[0] == f'`{source}`']
    return told[0].split(' of ')[0] if told else None


def blind_test(source):
    """The last cell of a source that is new; of others it is written by hand, and stays."""
    tests = [test for test, cells in blind_rows() if f'`{source}`' in cells[0]]
    return f'blind test {tests[0]}' if tests else ''


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
        if not set(sources) <= set(printed):
            return match[0]  # a set that this print of `validate` does not have yet
        for cell, side in ((5, 0), (7, 1)):
            known = [printed[s][side] for s in sources if printed[s][side]]
            cells[cell] = f" {', '.join(f'{figures[2]:.1f}' for figures in known)} "
        return '|'.join(cells)
    text = page.read_text()
    page.write_text(re.sub(BLIND_ROW, now, text, flags=re.M))


def median(values):
    return statistics.median(values)


def share(values, most):
    return f'{100 * sum(abs(v) <= most for v in values) / len(values):.0f} %'


def leaning(errors, digits=0):
    bias = 100 * median(errors)
    return f'{abs(bias):.{digits}f} % {"low" if bias < 0 else "high"}'


def off(errors, digits=0):
    return f'{100 * median(map(abs, errors)):.{digits}f} %'


def read_runs(path):
    """(source, record, answer) of every record that `validate --json` has a line for."""
    answers = {a['id']: a for a in map(json.loads, path.read_text().splitlines())}
    found = []
    for page in sorted((docs.parent / 'catalog' / 'runs').glob('*.json')):
        for record in json.loads(page.read_text()):
            if record.get('id') in answers:
                found.append((page.stem, record, answers[record['id']]))
    return found


def errors_of(figure):
    """(source, record, answer, forecast / measured - 1) of the runs that say and are told it."""
    return [(source, record, answer[figure], answer[figure]['predicted'] / measured - 1)
            for source, record, answer in runs
            if (measured := answer.get(figure, {}).get('measured'))
            and answer[figure].get('predicted') is not None]


# The two sources (one of them in two files) of which accuracy.md tells by themselves.
def is_nanotron(source):
    return source.startswith('a_nanotron')


def is_apart(source):
    return is_nanotron(source) or source == 'b_vtrain'


WAITS = (('compute', 'arithmetic (GEMMs, attention)'),
         ('hbm', 'GPU memory (large vocabularies, eager kernels, optimizer)'),
         ('link', 'a link (tensor or expert parallelism over slow links, ZeRO-3 over a network)'),
         ('host', 'the CPU (small batches, experts called one by one)'),
         ('bubble', 'other stages of its pipeline'))


def waits(_):
    by = {kind: [] for kind, _ in WAITS}
    for source, _, figure, error in errors_of('step_time_s'):
        if not is_apart(source):
            by[max(figure['waits_for'], key=figure['waits_for'].get)].append(error)
    every = [e for errors in by.values() for e in errors]
    lines = [f'| {words} | {len(by[k]):,} | {off(by[k])} | {leaning(by[k])} | '
             f'{share(by[k], 0.2)} |' for k, words in WAITS if by[k]]
    lines.append(f'| all of them | {len(every):,} | {off(every)} | {leaning(every, 1)} | '
                 f'{share(every, 0.2)} |')
    return [f'What to expect of a run of yours, from the published runs that were not made by '
            f'nanotron and vTrain ({len(every):,} of them; those two are explained below):',
            '\n'.join(['| the step mostly waits for | runs | median error | forecast low or high, '
                       'at the median | within 20 % |', '|---|---|---|---|---|'] + lines)]


ADAPTERS = {'lora', 'qlora', 'dora'}
GEFORCE = r'GTX|TITAN|RTX[- ]?[2345]0[5-9]0'

# By method, GPUs, whether they are GeForce cards and whether the model is a mixture of experts. A run
# counts in every row that it belongs to.
CASES = (
    ('LoRA, DoRA or QLoRA on one GPU', lambda m, n, g, e: m in ADAPTERS and n == 1),
    ('LoRA, DoRA or QLoRA on several', lambda m, n, g, e: m in ADAPTERS and n > 1),
    ('full fine-tuning on one GPU', lambda m, n, g, e: m == 'full' and n == 1),
    ('full fine-tuning on several', lambda m, n, g, e: m == 'full' and n > 1),
    ('any method on GeForce cards', lambda m, n, g, e: g),
    ('pretraining a dense model on 1 to 8 GPUs',
     lambda m, n, g, e: m == 'pretrain' and not e and n <= 8),
    ('the same on 9 to 128', lambda m, n, g, e: m == 'pretrain' and not e and 8 < n <= 128),
    ('the same on more than 128', lambda m, n, g, e: m == 'pretrain' and not e and n > 128),
    ('a mixture of experts, any method and number', lambda m, n, g, e: e))


def belonging(belongs, figure):
    """Errors of the case's runs; of nanotron and vTrain the page tells by themselves."""
    found = []
    for source, record, answer in runs:
        measured, predicted = (answer.get(figure, {}).get(k) for k in ('measured', 'predicted'))
        if is_apart(source) or is_ours(source) or not measured or predicted is None:
            continue
        card = record['hardware'].get('gpu') or ''
        if belongs(record['training'].get('method'), record['hardware'].get('gpus') or 1,
                   bool(re.match(GEFORCE, card)), 'experts' in answer):
            found.append(predicted / measured - 1)
    return found


def cases(_):
    lines = []
    for words, belongs in CASES:
        time, memory = (belonging(belongs, f) for f in ('step_time_s', 'peak_mem_gib'))
        lines.append(f'| {words} | {len(time):,} | {off(time)} | {leaning(time)} | '
                     f'{share(time, 0.2)} | {len(memory):,} | {off(memory)} | '
                     f'{share(memory, 0.1)} |')
    return ['\n'.join(['| your run | step times | typical error | leans | within 20 % | '
                       'memory peaks | typical error | within 10 % |',
                       '|---|---|---|---|---|---|---|---|'] + lines)]


def nanotron(_):
    spread, others = [], []
    for source, record, _, error in errors_of('step_time_s'):
        if not is_nanotron(source):
            continue
        plan, at = record['plan'], record['hardware']
        nodes = at['gpus'] / at.get('gpus_per_node', 8)
        wide = nodes > 1 and plan.get('pp', 1) > 1 and plan.get('tp', 1) > 1
        (spread if wide else others).append(error)
    return [f'{len(spread):,} runs: at the median the forecast is {100 + 100 * median(spread):.0f} '
            f'% of the measured time. When a run was made matters more than its plan, and no cause '
            f"could be proven. nanotron's other {len(others):,} runs are off by {off(others)} at "
            f'the median.']


def table_before(page):
    """Of the sources of three records and more, the column "before" of the page's table."""
    head = re.search(r'^\| source \| records \|.*\n\|[-|]+\n', page, re.M)
    cells = [[c.strip() for c in l.split('|')]
             for l in page[head.end():page.index('\n\n', head.end())].splitlines()]
    return [float(c[3]) for c in cells if int(c[2]) >= 3 and c[3] != '-']


def closing(start, pattern):
    """What the groups of `pattern` are in the line of `validate` that begins with `start`."""
    lines = pathlib.Path(sys.argv[1]).read_text().splitlines()
    return re.search(pattern, next(l for l in lines if l.startswith(start))).groups()


def sources(page):
    counted = [sides[0] for sides in printed.values() if sides[0] and sides[0][0] >= 3]
    medians = sorted(figures[2] for figures in counted)
    now, = closing('step time', r'sources ([\d.]+) %')
    below = sum(m < 10 for m in medians)
    above = ['{:.1f}'.format(m) for m in medians[(len(medians) + 1) // 2:][:3]]
    runs, bulk = closing('step time', r'all ([\d,]+) runs: median ([\d.]+) %')
    without = [e for source, _, _, e in errors_of('step_time_s') if source != 'b_vtrain']
    regret, tau = closing('ranking', r"mean ([\d.]+) %, Kendall's tau ([\d.]+)")
    strict, strict_regret, strict_tau = closing(
        'plan ranking', r"([\d,]+) groups .* mean ([\d.]+) %, Kendall's tau ([\d.]+)")
    done, asked, part = closing('answered', r'([\d,]+) of ([\d,]+) records \(([\d.]+) %\)')
    return [f'Median over sources of three records and more: {median(table_before(page)):.1f} % '
            f'before, {now} % now. {below} of {len(medians)} sources are below 10 % (the next above '
            f'the middle are at {above[0]}, {above[1]} and {above[2]}). The '
            f'mean over all {len(medians)} is {statistics.mean(medians):.1f} %, of their 90th '
            f'percentiles {statistics.mean(f[3] for f in counted):.0f}. All runs: median 22.8 % of '
            f"the 3,242 that were here at first, {bulk} % of {runs} now (without vTrain's "
            f"{off(without, 1)}). Kendall's tau over groups that differ in plan only: 0.64 before, "
            f'{tau} now; regret of the first-ranked plan 0.0 % at the median, {float(regret):.0f} % '
            f'on average. Where nothing but the plan differs, and each plan counts once ({strict} '
            f'groups): {strict_tau} and {float(strict_regret):.0f} %. {done} of {asked} records are answered ({part} %).']


def kinds(_):
    by = {}
    for source, _, figure, error in errors_of('peak_mem_gib'):
        if not is_nanotron(source) and not is_ours(source):
            by.setdefault(figure['kind'], []).append(error)
    told = (('allocated', 'allocated (`torch.cuda.max_memory_allocated`)'),
            ('reserved', "reserved (with the allocator's cache)"), ('device', 'device (nvidia-smi)'))
    return ['Where every setting is known the forecast is close: real PyTorch modules on fake '
            f'tensors agree with it to {printed["oracle_transformers"][1][2]:.1f} % at the median '
            '(`oracle_transformers`). Published runs leave settings out. Of those that were not '
            'made by nanotron:',
            '\n'.join(['| what was measured | runs | median error | within 10 % | within 20 % |',
                       '|---|---|---|---|---|'] +
                      [f'| {words} | {len(by[k]):,} | {off(by[k], 1)} | {share(by[k], 0.1)} | '
                       f'{share(by[k], 0.2)} |' for k, words in told])]


def ran_out():
    """(source, answer) of the runs that are known to have run out of memory."""
    return [(source, answer) for source, record, answer in runs
            if answer.get('outcome', {}).get('measured') == 'oom'
            and not record['measured'].get('oom_suspect')]


def is_false_fit(answer):
    return answer['outcome'].get('predicted') == 'ran'


def experts(_):
    false = [answer for _, answer in ran_out() if is_false_fit(answer)]
    return [f'by how much hardly any run says: {sum("experts" in a for a in false)} of the '
            f'{len(false)} false fits are of mixtures.']


def blind_rows():
    found = re.findall(BLIND_ROW, (docs / 'blind-tests.md').read_text(), re.M)
    return [(test, [c.strip() for c in rest.split('|')][1:-1]) for test, rest in found]


def parts(cell):
    """"5 of 27" as two numbers, or nothing."""
    told = re.fullmatch(r'([\d.]+) of (\d+)', cell)
    return (float(told[1]), int(told[2])) if told else None


def outcomes(page):
    now, = closing('peak memory', r'sources ([\d.]+) %')
    bulk, = closing('peak memory', r'runs: median ([\d.]+) %')
    false, out, refused, ran = closing(
        'out of memory', r'(\d+) false fits of ([\d,]+) .*; ([\d,]+) false .* of ([\d,]+)')
    late = [(cells, parts(cells[6])) for test, cells in blind_rows()
            if test != 'cards' and int(test) >= 5 and parts(cells[6])]
    blind = [sum(int(p[i]) for _, p in late) for i in (0, 1)]
    named = {source for cells, _ in late for source in re.findall(r'`(\w+)`', cells[0])}
    of_sets = {}
    for source, answer in ran_out():
        of_sets.setdefault(source if source in named else None, []).append(is_false_fit(answer))
    most = max(named, key=lambda source: len(of_sets.get(source, [])))
    here = [f for source in named for f in of_sets.get(source, [])]
    rest = of_sets.get(None, [])
    return [f'Median over the sources: {median(table_before(page)):.1f} at first, {now} now; all '
            f'runs {bulk}. Runs that ran out: {false} of {out} are forecast to fit. In the '
            f'{len(late)} sets of reports from the fifth blind test on that have any (see '
            f'[blind-tests.md](blind-tests.md)) {blind[0]} of {blind[1]} were forecast to fit when '
            f'they were first seen; {sum(here)} of the {len(here)} that are scored of them now are '
            f'({sum(of_sets[most])} of {len(of_sets[most])} in one of these sets), and {sum(rest)} '
            f'of the {len(rest)} others. Runs that ran and are forecast to run out: {refused} of '
            f'{ran} ({100 * int(refused.replace(",", "")) / int(ran.replace(",", "")):.1f} per '
            f'cent).']


def half(values):
    low, _, high = statistics.quantiles(values, n=4)
    return low, high


def blind(_):
    table = [cells for _, cells in blind_rows()]
    time, memory = ([parts(c[at])[0] for c in table if parts(c[at])] for at in (2, 4))
    out = [parts(c[6]) for c in table if parts(c[6])]
    ranges = ['{:.0f} and {:.0f}'.format(*half(v)) for v in (time, memory)]
    return [f'At the median of these tests a first forecast of step time is off by '
            f'{median(time):.0f} % (half of the tests lie between {ranges[0]}), of peak memory by '
            f'{median(memory):.0f} % (between {ranges[1]}). Of {sum(p[1] for p in out)} runs that '
            f'ran out of memory {sum(int(p[0]) for p in out)} were forecast to fit, '
            f'{max(int(p[0]) for p in out)} of them in one test.']


def read(_):
    table = [cells for _, cells in blind_rows()]
    time, memory = ([float(f) for c in table if c[at] for f in c[at].split(',')] for at in (3, 5))
    return [f'Once the code behind the runs was read, the same runs are off by {median(time):.0f} '
            f'and {median(memory):.0f} % at the median ("now"): how much could be explained.']


FIGURES = (cases, waits, nanotron, sources, kinds, experts, outcomes, blind, read)


def update_figures(page):
    """What stands between the markers: prose is wrapped, tables are left as they are."""
    text = page.read_text()

    def renewed(match):
        paragraphs = next(f for f in FIGURES if f.__name__ == match[1])(text)
        if match[2].startswith('\n'):
            return f'<!-- figures: {match[1]} -->\n' + '\n\n'.join(
                p if p.startswith('|') else textwrap.fill(p, 120) for p in paragraphs
            ) + '\n<!-- end -->'
        before = text[text.rindex('\n', 0, match.start()) + 1:match.start()]
        indent = ' ' * (3 if re.match(r'\d\. ', before) else 0)
        filled = textwrap.fill(paragraphs[0], 120, initial_indent=' ' * len(before),
                               subsequent_indent=indent)
        return f'<!-- figures: {match[1]} -->{filled[len(before):]}<!-- end -->'
    page.write_text(re.sub(r'<!-- figures: (\w+) -->(.*?)<!-- end -->', renewed, text,
                           flags=re.S))


printed = rows(pathlib.Path(sys.argv[1]).read_text())
runs = read_runs(pathlib.Path(sys.argv[2]))
update(docs / 'accuracy.md', 0, line)
update(docs / 'accuracy-memory.md', 1, line)
update_head(docs / 'accuracy.md', 'step time')
update_head(docs / 'accuracy-memory.md', 'peak memory', 'out of memory')
update_blind(docs / 'blind-tests.md')
for written in ('accuracy.md', 'accuracy-memory.md', 'blind-tests.md'):
    update_figures(docs / written)

if len(sys.argv) > 3:
    page = docs / 'fitted.md'
    text = page.read_text()
    block = re.search(r'^```\n.*?^```\n', text, re.M | re.S)
    printed_now = pathlib.Path(sys.argv[3]).read_text().strip('\n')
    page.write_text(text[:block.start()] + '```\n' + printed_now + '\n```\n' + text[block.end():])
