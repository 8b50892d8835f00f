#include <gtest/gtest.h>

#include "text/jinja_testing.h"

namespace crest::text::testing {
namespace {

struct Case {
  const char* expression;
  const char* value;
};

void expect_values(std::initializer_list<Case> cases) {
  for (const Case& c : cases) EXPECT_EQ(value_of(c.expression), c.value) << c.expression;
}

void expect_errors(std::initializer_list<Case> cases) {
  for (const Case& c : cases) {
    const std::string got = value_of(c.expression);
    EXPECT_TRUE(got.starts_with("error: t: line 1: ") && got.find(c.value) != std::string::npos)
        << c.expression << " gave " << got;
  }
}

// Values of this file were computed with jinja2 3.1.6 on CPython 3.11.
TEST(JinjaExpression, EmptyNeedlesAndNegativeSteps) {
  expect_values({{"'abc'.replace('','')", "abc"},
                 {"'abc'.replace('','-')", "-a-b-c-"},
                 {"'abc'.replace('','-',2)", "-a-bc"},
                 {"'é'.replace('','-')", "-é-"},
                 {"'abc'.count('')", "4"},
                 {"'abc'.find('')", "0"},
                 {"'abc'.rfind('')", "3"},
                 {"''.split()", "[]"},
                 {"'abcdef'[5:2:-1]", "fed"},
                 {"[0,1,2,3,4,5][4:1:-1]", "[4, 3, 2]"},
                 {"'abcdef'[:-3:-1]", "fe"},
                 {"'héllo'[::-1]", "olléh"},
                 {"(1,2,3)[::-2]", "(3, 1)"},
                 {"'abc'[10:]", ""},
                 {"'abc'[-10:2]", "ab"}});
  expect_errors({{"'a,b'.split('')", "empty separator"},
                 {"'a,b'.rsplit('')", "empty separator"},
                 {"'a'.partition('')", "empty separator"},
                 {"'abc'[::0]", "slice step cannot be zero"}});
  EXPECT_EQ(rendered("{% set n = 1 %}{{ ['a','b','c'][:-n] }} {{ 3 - -n }} {{ -n }} {{ - -n }} {{ 2--n }}"),
            "['a', 'b'] 4 -1 1 3");
}

TEST(JinjaExpression, Tojson) {
  const std::string o = "{% set o = {'b':1,'a':[1,2.0,true,none,\"é<&'\"]} %}";
  EXPECT_EQ(rendered(o + "{{ o|tojson }}"), "{\"b\": 1, \"a\": [1, 2.0, true, null, \"é<&'\"]}");
  EXPECT_EQ(rendered(o + "{{ o|tojson(ensure_ascii=true) }}"),
            "{\"b\": 1, \"a\": [1, 2.0, true, null, \"\\u00e9<&'\"]}");
  EXPECT_EQ(rendered(o + "{{ o|tojson(sort_keys=true, separators=(',', ':')) }}"),
            "{\"a\":[1,2.0,true,null,\"é<&'\"],\"b\":1}");
  EXPECT_EQ(rendered(o + "{{ o|tojson(indent=2) }}"),
            "{\n  \"b\": 1,\n  \"a\": [\n    1,\n    2.0,\n    true,\n    null,\n    \"é<&'\"\n  ]\n}");
  expect_values({{"1e20|tojson", "1e+20"},
                 {"1e-7|tojson", "1e-07"},
                 {"[]|tojson(indent=2)", "[]"},
                 {"{}|tojson(indent=2)", "{}"},
                 {"[1]|tojson(indent=0)", "[\n1\n]"},
                 {"[1, [2]]|tojson(indent='>')", "[\n>1,\n>[\n>>2\n>]\n]"},
                 {"'🦙'|tojson(true)", "\"\\ud83e\\udd99\""},
                 {"'\\x00\\x1f\\x7f\"\\\\/'|tojson", "\"\\u0000\\u001f\x7f\\\"\\\\/\""},
                 {"{1: 2, none: 3, true: 4, 1.5: 5}|tojson", "{\"1\": 4, \"null\": 3, \"1.5\": 5}"},
                 {"(1, 'a')|tojson", "[1, \"a\"]"}});
  expect_errors({{"nothing|tojson", "Object of type Undefined is not JSON serializable"},
                 {"{(1,2): 3}|tojson", "keys must be str"},
                 {"range(3)|tojson", "Object of type range"}});
}

TEST(JinjaExpression, Numbers) {
  expect_values({{"7 // 2", "3"},
                 {"-7 // 2", "-4"},
                 {"7 // -2", "-4"},
                 {"-7 % 3", "2"},
                 {"7 % -3", "-2"},
                 {"-7.5 % 2", "0.5"},
                 {"7.5 // 2", "3.0"},
                 {"1 / 2", "0.5"},
                 {"4 / 2", "2.0"},
                 {"2 ** 10", "1024"},
                 {"2 ** -1", "0.5"},
                 {"2 ** 0.5", "1.4142135623730951"},
                 {"1e16", "1e+16"},
                 {"123456789.5", "123456789.5"},
                 {"0.1 + 0.2", "0.30000000000000004"},
                 {"1e15", "1000000000000000.0"},
                 {"1_000", "1000"},
                 {"0xff", "255"},
                 {"0b101", "5"},
                 {"true + 1", "2"},
                 {"5 == 5.0", "True"},
                 {"1 < 2 < 3", "True"},
                 {"3 > 2 > 2", "False"},
                 {"1 == 1 in [1]", "True"},
                 {"2.675|round(2)", "2.67"},
                 {"2.5|round", "2.0"},
                 {"42|round", "42"},
                 {"42.55|round(1, 'floor')", "42.5"},
                 {"'0x1F'|int(0, 16)", "31"},
                 {"'42.9'|int", "42"},
                 {"'x'|int(7)", "7"},
                 {"'1e3'|float", "1000.0"},
                 {"9223372036854775807 + 1", "9223372036854775808"},
                 {"18446744073709551615", "18446744073709551615"}});
  expect_errors({{"1 // 0", "integer division or modulo by zero"},
                 {"1.0 / 0", "float division by zero"},
                 {"1 % 0", "integer division or modulo by zero"},
                 {"2 ** 200", "127 bits"},
                 {"1e999|int", "infinity"}});
}

TEST(JinjaExpression, Strings) {
  expect_values({{"'%s-%05.1f|%-4s|%x' % ('a', 2.25, 'b', 255)", "a-002.2|b   |ff"},
                 {"'%(k)s' % {'k': 'v'}", "v"},
                 {"'%s' % [1, 2]", "[1, 2]"},
                 {"'{0}{1}{0} {k:>4} {x[a]} {{}}'.format('a', 'b', k=1, x={'a': 2})", "aba    1 2 {}"},
                 {"'{:,} {:+.2e} {:%} {:#x} {:*^7}'.format(1234567, 12345.678, 0.25, 255, 'mid')",
                  "1,234,567 +1.23e+04 25.000000% 0xff **mid**"},
                 {"'a b  c'.split()", "['a', 'b', 'c']"},
                 {"'a b  c'.split(' ')", "['a', 'b', '', 'c']"},
                 {"' a b c '.split(none, 1)", "['a', 'b c ']"},
                 {"' a b c '.rsplit(none, 1)", "[' a b', 'c']"},
                 {"'aaa'.rsplit('aa', 1)", "['a', '']"},
                 {"'a\\r\\nb\\nc\\u2028d'.splitlines()", "['a', 'b', 'c', 'd']"},
                 {"'xxhixx'.strip('x')", "hi"},
                 {"'\\u3000 hi \\xa0'.strip()", "hi"},
                 {"'straße ǆ ŉ'.upper()", "STRASSE Ǆ ʼN"},
                 {"'ΑΣ ΑΣΑ'.lower()", "ας ασα"},
                 {"\"they're bill's\".title()", "They'Re Bill'S"},
                 {"'hello (world)-foo'|title", "Hello (World)-Foo"},
                 {"'ab'.center(5, '*')", "**ab*"},
                 {"'-4'.zfill(4)", "-004"},
                 {"['it\\'s', '\"', 'a\\nb', '\\x00é🦙']", "[\"it's\", '\"', 'a\\nb', '\\x00é🦙']"},
                 {"'a' 'b' \"c\"", "abc"},
                 {"'\\u00e9\\x41\\101\\q'", "éAA\\q"},
                 {"('<b>'|safe) + '<i>'", "<b>&lt;i&gt;"},
                 {"'<b>'|e", "&lt;b&gt;"},
                 {"'abcdefghij'|truncate(5, true, '', 0)", "abcde"},
                 {"'a\\n\\nb'|indent(2)", "a\n\n  b"},
                 {"1 ~ none ~ 2.0 ~ true ~ missing", "1None2.0True"}});
  expect_errors({{"'a' + 1", "can only concatenate str (not \"int\") to str"},
                 {"'%d' % 'x'", "a real number is required"},
                 {"'{} {}'.format(1)", "out of range"},
                 {"'abc'.index('z')", "substring not found"},
                 {"'%s %s' % 'a'", "not enough arguments"},
                 {"'%s' % (1, 2)", "not all arguments converted"}});
}

TEST(JinjaExpression, Collections) {
  const std::string rows = "{% set r = [{'n': 'x', 'v': 2}, {'n': 'Y', 'v': 1}, {'n': 'x', 'v': 3}] %}";
  EXPECT_EQ(rendered(rows + "{{ r|map(attribute='v')|list }} {{ r|selectattr('v', 'gt', "
                            "1)|map(attribute='n')|join(',') }} {{ r|sum(attribute='v') }}"),
            "[2, 1, 3] x,x 6");
  EXPECT_EQ(rendered(rows + "{% for k, g in r|groupby('n') %}{{ k }}{{ g|length }}{% endfor %} {{ "
                            "r|sort(attribute='n,v')|map(attribute='v')|list }}"),
            "x2Y1 [2, 3, 1]");
  EXPECT_EQ(rendered(rows + "{% set g = r|selectattr('v')|map(attribute='n') %}{{ g|list }}{{ g|list }}"),
            "['x', 'Y', 'x'][]");
  expect_values({{"{'b': 1, 'a': 2}|dictsort", "[('a', 2), ('b', 1)]"},
                 {"[1, 2, 3, 4, 5]|batch(2, 0)|list", "[[1, 2], [3, 4], [5, 0]]"},
                 {"[1, 2, 3, 4, 5]|slice(2)|list", "[[1, 2, 3], [4, 5]]"},
                 {"['b', 'A', 'B', 'a']|unique|list", "['b', 'A']"},
                 {"['b', 'A', 'c']|sort", "['A', 'b', 'c']"},
                 {"[3, 1, 2]|max", "3"},
                 {"[]|first is undefined", "True"},
                 {"{1: 'a', 1.0: 'b', true: 'c'}", "{1: 'c'}"},
                 {"{'items': 5}['items']", "5"},
                 {"{'items': 5}.items is callable", "True"},
                 {"{'a': 1}.get('b', 7)", "7"},
                 {"dict(a=1, b=2).keys()", "dict_keys(['a', 'b'])"},
                 {"range(10)[2:8:3]", "range(2, 8, 3)"},
                 {"(1,)", "(1,)"},
                 {"()", "()"},
                 {"[1, [2, (3,)]] == [1, [2, (3,)]]", "True"},
                 {"[1] == (1,)", "False"},
                 {"'x' in {'x': 1}", "True"},
                 {"2 in range(5)", "True"},
                 {"'bc' in 'abcd'", "True"},
                 {"[1, 2].index(2)", "1"}});
  expect_errors({{"{[1]: 2}", "unhashable type: 'list'"},
                 {"[1, 'a']|sort", "not supported between instances of"},
                 {"5|length", "has no len()"},
                 {"5|list", "not iterable"}});
}

TEST(JinjaExpression, UndefinedAndErrors) {
  expect_values({{"missing", ""},
                 {"missing|default('d')", "d"},
                 {"none|default('d')", "None"},
                 {"''|default('d', true)", "d"},
                 {"missing is defined", "False"},
                 {"missing == other_missing", "True"},
                 {"{}.a is undefined", "True"},
                 {"[].b|length", "0"},
                 {"'x' if false", ""},
                 {"missing|list", "[]"},
                 {"not missing", "True"}});
  expect_errors({{"missing.attribute", "'missing' is undefined"},
                 {"missing + 1", "'missing' is undefined"},
                 {"{}.a.b", "'dict object' has no attribute 'a'"},
                 {"none.x.y", "'None' has no attribute 'x'"},
                 {"'s'.nope()", "'str object' has no attribute 'nope'"},
                 {"[1].foo.bar", "'list object' has no attribute 'foo'"},
                 {"missing()", "'missing' is undefined"},
                 {"'a'()", "'str' object is not callable"},
                 {"1|nofilter", "No filter named 'nofilter'"},
                 {"1 is notest", "No test named 'notest'"},
                 {"1 < 'a'", "'<' not supported between instances of 'int' and 'str'"},
                 {"'a' > 1", "'>' not supported between instances of 'str' and 'int'"},
                 {"for_sure.x", "'for_sure' is undefined"}});
}

// The message of raise_exception must reach whoever asked.
TEST(JinjaExpression, RaisedMessageSurfaces) {
  EXPECT_EQ(rendered("a\n{{ raise_exception('No user query: ' ~ 7) }}"), "error: t: line 2: No user query: 7");
  const std::string long_message = rendered("{{ raise_exception('x' * 100000) }}");
  EXPECT_LT(long_message.size(), 20000u);
}

// Nothing but the data of a template can be reached: dunder names, mutation, attributes of functions.
TEST(JinjaExpression, Sandbox) {
  expect_values({{"''.__class__", ""},
                 {"{'__class__': 1}.__class__", ""},
                 {"{'__class__': 1}['__class__']", "1"},
                 {"'x'|attr('__class__')", ""}});
  expect_errors({{"''.__class__.__mro__", "access to attribute '__class__' of 'str' object is unsafe"},
                 {"[].append(1)", "access to attribute 'append' of 'list' object is unsafe"},
                 {"{}.update({'a': 1})", "unsafe"},
                 {"''['__class__'].x", "unsafe"},
                 {"'{0.__class__.__mro__}'.format('')", "unsafe"},
                 {"[]|map(attribute='__class__.x')|list|first.x", "error"},
                 {"namespace(_x=1)", "underscore"},
                 {"cycler.__init__.__globals__", "unsafe"}});
}

}  // namespace
}  // namespace crest::text::testing
