#!/usr/bin/env python3
"""Random expressions and statements through jinja2 and through Crest; compares results byte for byte.

usage: expression_oracle.py DRIVER [--count N] [--seed S]
"""
import argparse
import random
import re
import sys

from jinja_environment import Driver, expected

STRINGS = ["''", "'a'", "'abc'", "'Hello World'", "'  pad '", "'a,b,,c'", "'ÄÖü ß'", "'日本語'", "'🦙x'", "'it\\'s'", "'\"q\"'", "'a\\nb\\n'",
           "'x\\ty'", "'123'", "'-4.5'", "'%s-%d'", "'{}:{}'", "'<b>&</b>'", "'aaa'", "'ǆ'", "'ΑΣ'", "'\\x00\\x7f'", "'e\\u0301'", "'one two  three'",
           "s", "u", "m"]
INTS = ["0", "1", "2", "3", "-1", "-2", "7", "10", "n", "255", "1000000", "true"]
FLOATS = ["0.0", "1.5", "-2.5", "1e20", "1e-7", "0.1", "f", "3.0", "2.675", "1e16", "123456789.123"]
VARIABLES = {"s": "some Text here", "u": "Ünïcødé 🦙 text", "m": "line one\nline two\n\nline four", "n": 5, "f": 3.25, "t": True, "z": None,
             "l": [3, 1, 2], "w": ["pear", "Apple", "fig", "apple"], "d": {"b": 1, "a": [1, 2.0, None], "k": "v", "é": {"x": True}},
             "r": [{"n": "x", "v": 2, "g": {"h": 1}}, {"n": "Y", "v": 1, "g": {"h": 2}}, {"n": "x", "v": 3, "g": {"h": 1}}], "e": [], "o": {}}


class Maker:
    def __init__(self, rng):
        self.rng = rng

    def pick(self, *choices):
        choice = self.rng.choice(choices)
        return choice() if callable(choice) else choice

    def text(self, depth):
        if depth <= 0:
            return self.rng.choice(STRINGS)
        d = depth - 1
        t, i, a, l = (lambda: self.text(d)), (lambda: self.integer(d)), (lambda: self.any(d)), (lambda: self.list(d))
        return self.pick(
            lambda: f"({t()} + {t()})", lambda: f"({a()} ~ {a()})", lambda: f"({t()} * {self.rng.randrange(-1, 4)})",
            lambda: f"{t()}.{self.rng.choice(['upper', 'lower', 'title', 'capitalize', 'swapcase', 'casefold', 'strip', 'lstrip', 'rstrip'])}()",
            lambda: f"{t()}.{self.rng.choice(['strip', 'lstrip', 'rstrip'])}({t()})",
            lambda: f"{t()}.replace({t()}, {t()})", lambda: f"{t()}.replace({t()}, {t()}, {i()})",
            lambda: f"{t()}[{self.bound(d)}:{self.bound(d)}]", lambda: f"{t()}[{self.bound(d)}:{self.bound(d)}:{self.step()}]", lambda: f"{t()}[{i()}]",
            lambda: f"{t()}.{self.rng.choice(['center', 'ljust', 'rjust'])}({self.rng.randrange(12)}{self.rng.choice(['', ', `*`'])})".replace("`", "'"),
            lambda: f"{t()}.zfill({self.rng.randrange(9)})", lambda: f"{t()}.join({l()})", lambda: f"{t()}.expandtabs({self.rng.randrange(5)})",
            lambda: f"{t()}.{self.rng.choice(['removeprefix', 'removesuffix'])}({t()})",
            lambda: f"({t()}|{self.rng.choice(['upper', 'lower', 'title', 'capitalize', 'trim', 'reverse', 'string', 'escape', 'e', 'safe', 'forceescape', 'striptags', 'urlencode', 'first', 'last'])})",
            lambda: f"({t()}|replace({t()}, {t()}))", lambda: f"({t()}|center({self.rng.randrange(12)}))",
            lambda: f"({t()}|indent({self.rng.choice(['2', 'width=3, first=true', '1, blank=true', 'width=`>`'])}))".replace("`", "'"),
            lambda: f"({t()}|truncate({self.rng.choice(['5', '8, true', '6, false, `-`', '4, leeway=0'])}))".replace("`", "'"),
            lambda: f"({t()}|trim({t()}))", lambda: f"({l()}|join({t()}))", lambda: f"({a()}|string)", lambda: f"({a()}|tojson)",
            lambda: f"({a()}|tojson({self.rng.choice(['indent=2', 'ensure_ascii=true', 'sort_keys=true', 'separators=(`,`, `:`)', 'indent=`>`', 'true', 'indent=0'])}))".replace("`", "'"),
            lambda: f"({self.format()})", lambda: f"({self.number(d)}|filesizeformat({self.rng.choice(['', 'true'])}))",
            lambda: f"({t()} if {a()} else {t()})", lambda: f"({a()}|default({t()}, {self.rng.choice(['true', 'false'])}))",
            lambda: f"({self.dict(d)}|xmlattr)", lambda: f"({self.dict(d)}|urlencode)")

    def format(self):
        conversion = self.rng.choice(["%s", "%d", "%5d", "%-5d|", "%05d", "%+d", "%x", "%X", "%#x", "%o", "%.2f", "%8.3f", "%e", "%g", "%r", "%c", "%10s|",
                                      "%-10s|", "%.2s", "%%", "%(k)s", "% d", "%i", "%5.1f%%", "%G", "%.0f", "%#o", "%.3d"])
        brace = self.rng.choice(["{}", "{0}", "{:>8}", "{:<8}|", "{:^9}|", "{:*^9}", "{:05d}", "{:+}", "{:,}", "{:_}", "{:.2f}", "{:e}", "{:g}", "{:x}",
                                 "{:#x}", "{:b}", "{:%}", "{!r}", "{!s:>6}", "{:.3}", "{0[0]}", "{k}", "{:10.3f}|", "{:>{w}}", "{{}}", "{:n}", "{:#o}", "{:c}",
                                 "{0!r:>9}", "{:010,.2f}", "{:G}", "{: }", "{:=+8}", "{:08}", "{:.0f}", "{:<05}", "{:o}"])
        a = self.any(1)
        return self.rng.choice([f"'{conversion}' % {a}", f"'{conversion}' % ({a},)", f"'{conversion}'|format({a})", f"'{brace}'.format({a})",
                                f"'{brace}'.format({a}, k={self.any(0)}, w=7)", f"'{conversion} {conversion}' % ({a}, {self.any(0)})", "'%(k)s' % d"])

    def bound(self, depth):
        return self.rng.choice(["", "", self.integer(0), str(self.rng.randrange(-7, 8))])

    def step(self):
        return self.rng.choice(["", "1", "2", "-1", "-2", "3", "-3", "0" if self.rng.random() < 0.1 else "-1", "100", "-100"])

    def integer(self, depth):
        if depth <= 0:
            return self.rng.choice(INTS)
        d = depth - 1
        i, t, l = (lambda: self.integer(d)), (lambda: self.text(d)), (lambda: self.list(d))
        return self.pick(
            lambda: f"({i()} {self.rng.choice(['+', '-', '*', '//', '%'])} {i()})", lambda: f"(-{i()})", lambda: f"({i()}|abs)",
            lambda: f"({self.number(d)}|int)", lambda: f"({t()}|int)", lambda: f"({t()}|int({i()}, {self.rng.choice(['10', '16', '0', '2'])}))",
            lambda: f"({t()}|length)", lambda: f"({l()}|length)", lambda: f"({l()}|count)", lambda: f"({t()}|wordcount)",
            lambda: f"{t()}.{self.rng.choice(['find', 'rfind', 'count', 'index', 'rindex'])}({t()})",
            lambda: f"{t()}.{self.rng.choice(['find', 'rfind', 'count'])}({t()}, {i()})", lambda: f"{t()}.count({t()}, {i()}, {i()})",
            lambda: f"{l()}.index({self.any(0)})", lambda: f"{l()}.count({self.any(0)})", lambda: f"({l()}|sum)", lambda: f"(r|sum(attribute='v'))",
            lambda: f"(({i()}|abs) ** {self.rng.randrange(4)})", lambda: f"(+{i()})", lambda: f"({i()}|round({self.rng.choice(['', '-1', '1', '0, `floor`'])}))".replace("`", "'"))

    def number(self, depth):
        if depth <= 0:
            return self.rng.choice(INTS + FLOATS)
        d = depth - 1
        n = lambda: self.number(d)  # noqa: E731
        return self.pick(lambda: self.integer(d), lambda: f"({n()} {self.rng.choice(['+', '-', '*', '/', '//', '%'])} {n()})", lambda: f"({n()}|float)",
                         lambda: f"({n()}|round)", lambda: f"({n()}|round({self.rng.randrange(-2, 4)}))",
                         lambda: f"({n()}|round({self.rng.randrange(3)}, '{self.rng.choice(['ceil', 'floor', 'common'])}'))",
                         lambda: f"({self.text(0)}|float)", lambda: f"(({n()}|abs) ** {n()})" if self.rng.random() < 0.2 else n(), lambda: f"(-{n()})",
                         lambda: f"({self.list(d)}|{self.rng.choice(['max', 'min'])})")

    def list(self, depth):
        if depth <= 0:
            return self.rng.choice(["l", "w", "r", "e", "[]", "[1, 2, 3]", "['b', 'A', 'c']", "(1,)", "()", "range(4)|list", "[none, 1, 'x', 1.5]", "[[1, 2], [3]]"])
        d = depth - 1
        l, t, i, a = (lambda: self.list(d)), (lambda: self.text(d)), (lambda: self.integer(d)), (lambda: self.any(d))
        return self.pick(
            lambda: f"[{a()}, {a()}]", lambda: f"({l()} + {l()})", lambda: f"({l()} * {self.rng.randrange(3)})", lambda: f"{t()}.split({t()})",
            lambda: f"{t()}.split()", lambda: f"{t()}.split(none, {i()})", lambda: f"{t()}.{self.rng.choice(['rsplit', 'split'])}({t()}, {self.rng.randrange(-1, 4)})",
            lambda: f"{t()}.rsplit(none, {self.rng.randrange(-1, 4)})", lambda: f"{t()}.rsplit()",
            lambda: f"{t()}.splitlines({self.rng.choice(['', 'true'])})", lambda: f"{t()}.{self.rng.choice(['partition', 'rpartition'])}({t()})",
            lambda: f"{l()}[{self.bound(d)}:{self.bound(d)}]", lambda: f"{l()}[{self.bound(d)}:{self.bound(d)}:{self.step()}]",
            lambda: f"({t()}|list)", lambda: f"({self.dict(d)}|list)", lambda: f"({l()}|{self.rng.choice(['reverse', 'unique', 'list', 'sort'])}|list)",
            lambda: f"({l()}|sort(reverse={self.rng.choice(['true', 'false'])}))", lambda: f"({l()}|sort(case_sensitive=true))",
            lambda: f"(r|sort(attribute='{self.rng.choice(['n', 'v', 'g.h', 'n,v'])}'))", lambda: f"({l()}|map('{self.rng.choice(['upper', 'string', 'length', 'int', 'tojson', 'abs'])}')|list)",
            lambda: f"(r|map(attribute='{self.rng.choice(['n', 'v', 'g.h', 'missing'])}')|list)", lambda: "(r|map(attribute='q', default='?')|list)",
            lambda: f"({l()}|{self.rng.choice(['select', 'reject'])}('{self.rng.choice(['string', 'number', 'odd', 'none', 'defined', 'sequence'])}')|list)",
            lambda: f"({l()}|{self.rng.choice(['select', 'reject'])}('{self.rng.choice(['equalto', 'gt', 'ne', 'in'])}', {a()})|list)", lambda: f"({l()}|select|list)",
            lambda: f"(r|{self.rng.choice(['selectattr', 'rejectattr'])}('v', '{self.rng.choice(['gt', 'eq', '<=', 'ne'])}', {i()})|list)",
            lambda: f"({l()}|batch({self.rng.randrange(1, 4)}{self.rng.choice(['', ', 0'])})|list)", lambda: f"({l()}|slice({self.rng.randrange(1, 4)}{self.rng.choice(['', ', 0'])})|list)",
            lambda: f"(r|groupby('{self.rng.choice(['n', 'v', 'g.h'])}')|list)", lambda: f"({self.dict(d)}|dictsort({self.rng.choice(['', 'true', 'reverse=true', 'by=`value`'])}))".replace("`", "'"),
            lambda: f"({self.dict(d)}|items|list)", lambda: f"({self.dict(d)}.{self.rng.choice(['keys', 'values', 'items'])}()|list)", lambda: f"({a()}, {a()})",
            lambda: f"(range({i()}, {i()})|list)", lambda: f"(range({self.rng.randrange(9)}, {self.rng.randrange(9)}, {self.rng.choice([-2, -1, 1, 3])})|list)")

    def dict(self, depth):
        if depth <= 0:
            return self.rng.choice(["d", "o", "{}", "{'a': 1}", "{'x': 'y', 'n': none}", "{1: 2, 'b': [3]}"])
        return self.pick(lambda: f"{{{self.text(0)}: {self.any(depth - 1)}, {self.text(0)}: {self.any(0)}}}", lambda: f"dict({self.dict(depth - 1)}, a={self.any(0)})",
                         lambda: f"dict(k={self.any(0)})", lambda: "d['é']", lambda: "r[0]", lambda: "dict([[1, 2], ['a', 'b']])", lambda: "{1: 'a', 1.0: 'b', true: 'c'}")

    def boolean(self, depth):
        d = max(depth - 1, 0)
        a = lambda: self.any(d)  # noqa: E731
        same = lambda make: (make(d), make(d))  # noqa: E731
        ordered = lambda: self.rng.choice(["<", "<=", ">", ">="]).join(same(self.rng.choice([self.text, self.number, self.list])))  # noqa: E731
        test = ["defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "mapping", "sequence", "iterable", "true", "false",
                "lower", "upper", "callable", "escaped"]
        return self.pick(
            lambda: f"({a()} == {a()})", lambda: f"({a()} != {a()})", lambda: f"({ordered()})", lambda: f"({a()} {self.rng.choice(['and', 'or'])} {a()})",
            lambda: f"(not {a()})", lambda: f"({self.text(d)} {self.rng.choice(['in', 'not in'])} {self.text(d)})", lambda: f"({a()} in {self.list(d)})",
            lambda: f"({self.text(d)} in {self.dict(d)})", lambda: f"({a()} is {self.rng.choice(['', 'not '])}{self.rng.choice(test)})",
            lambda: f"({self.integer(d)} is {self.rng.choice(['odd', 'even', 'divisibleby 3', 'eq 2', 'lt(3)', 'in [1, 2]', 'sameas 1', 'ge 1'])})",
            lambda: f"{self.text(d)}.{self.rng.choice(['startswith', 'endswith'])}({self.text(0)})", lambda: f"{self.text(d)}.startswith(({self.text(0)}, {self.text(0)}))",
            lambda: f"{self.text(d)}.{self.rng.choice(['isdigit', 'isalpha', 'isalnum', 'isspace', 'isupper', 'islower', 'istitle', 'isdecimal', 'isnumeric', 'isidentifier', 'isprintable', 'isascii'])}()",
            lambda: f"({self.integer(d)} < {self.integer(d)} <= {self.number(d)})", lambda: f"({self.integer(d)} == {self.number(d)} != {a()})")

    def any(self, depth):
        kind = self.rng.random()
        if kind < 0.30:
            return self.text(depth)
        if kind < 0.45:
            return self.integer(depth)
        if kind < 0.55:
            return self.number(depth)
        if kind < 0.72:
            return self.list(depth)
        if kind < 0.80:
            return self.dict(depth)
        if kind < 0.92:
            return self.boolean(depth)
        return self.rng.choice(["z", "t", "none", "missing", "d.a", "d['k']", "d.nothing", "r[0].n", "l.0", "d.get('k')", "d.get('q', 7)", "l[-1]", "d.é.x",
                                "s|first", "e|first", "w|last", "s.__class__", "l[99]", "namespace(a=1).a", "cycler('x', 'y').next()"])

    def statement(self, depth):
        d = depth - 1
        body = lambda: "".join(self.statement(d) for _ in range(self.rng.randrange(1, 3)))  # noqa: E731
        if depth <= 0:
            return self.pick(lambda: f"{{{{ {self.any(1)} }}}}", "text ", "\n", "  ", "{# note #}", lambda: f"{{% set v = {self.any(1)} %}}", "{{ v }}", "{{ i }}",
                             "{{ loop.index }}", "{%- break %}" if self.rng.random() < 0.2 else "", "{% continue -%}" if self.rng.random() < 0.1 else "",
                             "{{ loop.first ~ loop.last ~ loop.length ~ loop.revindex0 }}", "{{ loop.previtem }}|{{ loop.nextitem }}", "{{ loop.cycle('a', 'b') }}",
                             "{{ loop.changed(i) }}", "{% set ns.c = ns.c + 1 %}{{ ns.c }}")
        b, e = self.rng.choice(["{%", "{%-", "{%+"]), self.rng.choice(["%}", "-%}", "+%}"])
        return self.pick(
            lambda: f"{b} if {self.any(1)} {e}{body()}{b} elif {self.any(0)} {e}{body()}{b} else {e}{body()}{b} endif {e}",
            lambda: f"\n  {b} for i in {self.list(1)} {e}\n{body()}{b} endfor {e}\n", lambda: f"{b} for i in {self.list(1)} if {self.boolean(1)} {e}{body()}{b} else {e}{body()}{b} endfor {e}",
            lambda: f"{b} for k, i in {self.dict(1)}.items() {e}{{{{ k }}}}{body()}{b} endfor {e}", lambda: f"{b} set v {e}{body()}{b} endset {e}{{{{ v }}}}",
            lambda: f"{b} with v = {self.any(1)}, i = 1 {e}{body()}{b} endwith {e}", lambda: f"{b} filter upper {e}{body()}{b} endfilter {e}",
            lambda: f"{b} macro f(i, v={self.any(0)}) {e}{body()}{b} endmacro {e}{{{{ f({self.any(0)}) }}}}{{{{ f(1, v={self.any(0)}) }}}}",
            lambda: f"{b} macro g() {e}[{{{{ caller({self.any(0)}) }}}}]{b} endmacro {e}{b} call(i) g() {e}{body()}{b} endcall {e}",
            lambda: f"{b} set ns = namespace(c={self.rng.randrange(3)}) {e}{body()}", lambda: f"{b} generation {e}{body()}{b} endgeneration {e}",
            lambda: f"{b} raw {e} {{{{ x }}}} {{% y %}} {b} endraw {e}" if b != "{%+" else body(),
            lambda: f"{b} for i in {self.list(1)} recursive {e}{{{{ loop.depth }}}}{{{{ loop([]) }}}}{b} endfor {e}",
            lambda: f"{b} autoescape {self.rng.choice(['true', 'false'])} {e}{body()}{b} endautoescape {e}", lambda: body() + body())


UNSTABLE = re.compile(r"<[^>]*( at 0x|object)|object at 0x|<function|<built-in|<Macro|<bound|<jinja2")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("driver")
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=10)
    options = parser.parse_args()
    driver = Driver(options.driver)
    rng = random.Random(options.seed)
    maker = Maker(rng)
    results = {"equal": 0, "both raise": 0, "skipped": 0, "different": 0}
    for _ in range(options.count):
        source = maker.statement(3) if rng.random() < 0.3 else "{{ " + maker.any(rng.choice([1, 2, 2, 3])) + " }}"
        made = {"template": source, "extra": VARIABLES}
        want, error = expected(made)
        # jinja2 computes constant expressions while it compiles, where the wrong type of a slice is not an error; complex
        # numbers are not supported here.
        if (want is not None and (UNSTABLE.search(want) or re.search(r"\dj\b", want))) or isinstance(error, (MemoryError, RecursionError)):
            results["skipped"] += 1
            continue
        got, message, _ = driver(made)
        if error is None and message and "not subscriptable" in message:
            results["skipped"] += 1
            continue
        if error is not None and got is None:
            results["both raise"] += 1
        elif error is None and got == want:
            results["equal"] += 1
        else:
            results["different"] += 1
            if results["different"] <= options.show:
                print(f"---\n{source}\nexpected: {want!r} {type(error).__name__} {error}\ngot:      {got!r} {message}")
    print(", ".join(f"{count} {name}" for name, count in results.items()))
    return 1 if results["different"] or not results["equal"] else 0


if __name__ == "__main__":
    sys.exit(main())
