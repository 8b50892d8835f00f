#include <gtest/gtest.h>

#include <chrono>

#include "text/jinja_testing.h"

namespace crest::text::testing {
namespace {

// Below 100 ms in an optimised build on an idle machine; others must only show that the end comes.
#if defined(NDEBUG) && !defined(__SANITIZE_ADDRESS__)
constexpr double kLongest = 0.5;
#else
constexpr double kLongest = 20;
#endif

// Nodes point to constants of the template, which must go last: here, and where one template takes another's place
// (a fault that only the address sanitizer sees).
TEST(JinjaTemplate, ConstantsOutliveTheNodes) {
  auto chat = ChatTemplate::parse("{% set x = 'first' %}{{ x ~ 'a' }}", "t");
  ASSERT_TRUE(chat.ok());
  for (const char* text : {"{{ 'second' ~ \"third\" }}", "plain", "{% if 'x' in 'xyz' %}{{ {'k': 'v'}['k'] }}{% endif %}"}) {
    auto next = ChatTemplate::parse(text, "t");
    ASSERT_TRUE(next.ok());
    *chat = *std::move(next);
  }
  const auto segments = chat->render(Json::array(), {});
  ASSERT_TRUE(segments.ok());
  EXPECT_EQ(join_segments(*segments), "v");
}

TEST(JinjaTemplate, WhitespaceControl) {
  EXPECT_EQ(rendered("a\n  {% if true %}\nb\n  {% endif %}\nc"), "a\nb\nc");
  EXPECT_EQ(rendered("a\n  {%+ if true %}\nb{% endif +%}\nc"), "a\n  b\nc");
  EXPECT_EQ(rendered("a \n {%- if true -%} \n b {%- endif -%} \n c"), "abc");
  EXPECT_EQ(rendered("a\n  {{ 1 }}\nb"), "a\n  1\nb");
  EXPECT_EQ(rendered("a\n  {# x #}\nb {#- y -#} c"), "a\nbc");
  EXPECT_EQ(rendered("x {% if 1 %} y"),
            "error: t: line 1: Unexpected end of template. Jinja was looking for the following tags: 'elif' or 'else' "
            "or 'endif'. The innermost block that needs to be closed is 'if'.");
  EXPECT_EQ(rendered("{% raw %} {{ x }} {% endraw %}|{%- raw -%}  a {% if %} {%- endraw %}\nb"),
            " {{ x }} |a {% if %}b");
  EXPECT_EQ(rendered("line\r\nnext\rlast\n"), "line\nnext\nlast");
  EXPECT_EQ(rendered("a\n\n"), "a\n");
  EXPECT_EQ(rendered("{{ '{{' }} {{ \"%}\" }} {{ {'a': {'b': 1}}['a']['b'] }}"), "{{ %} 1");
}

TEST(JinjaTemplate, LoopsAndScopes) {
  EXPECT_EQ(rendered("{% for x in 'abc' %}{{ loop.index }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ "
                     "loop.previtem }}{{ loop.nextitem }};{% endfor %}"),
            "12TrueFalseb;21FalseFalseac;30FalseTrueb;");
  EXPECT_EQ(rendered("{% set x = 0 %}{% for i in [1, 2] %}{{ x }}{% set x = i %}{{ x }}{% endfor %}{{ x }}"), "01020");
  EXPECT_EQ(
      rendered("{% set ns = namespace(x=0) %}{% for i in [1, 2, 3] %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}"),
      "6");
  EXPECT_EQ(rendered("{% for i in range(9) if i is odd %}{% if i == 3 %}{% continue %}{% endif %}{% if i == 7 %}{% "
                     "break %}{% endif %}{{ i }}{{ loop.index }} {% endfor %}"),
            "11 53 ");
  EXPECT_EQ(rendered("{% for i in [] %}x{% else %}none{% endfor %}"), "none");
  EXPECT_EQ(rendered("{% for k, v in {'a': 1, 'b': 2}.items() %}{{ k }}{{ v }}{% endfor %}{% for a, (b, c) in [(1, (2, "
                     "3))] %}{{ a + b + c }}{% endfor %}"),
            "a1b26");
  EXPECT_EQ(rendered("{% for n in [[1, [2]], [3]] recursive %}{{ loop.depth }}{% if n is iterable %}{{ loop(n) }}{% "
                     "endif %}.{% endfor %}"),
            "12.23...12..");
  EXPECT_EQ(rendered("{% for x in [1, 1, 2] %}{{ loop.changed(x) }}{{ loop.cycle('a', 'b') }}{% endfor %}"),
            "TrueaFalsebTruea");
  EXPECT_EQ(rendered("{% for a, b in [(1, 2, 3)] %}{% endfor %}"),
            "error: t: line 1: too many values to unpack (expected 2)");
  EXPECT_EQ(rendered("{% break %}"), "error: t: line 1: 'break' outside loop");
  // The condition of a loop is asked when an item is needed, not before.
  EXPECT_EQ(rendered("{% set ns = namespace(stop=false) %}{% for i in range(5) if not ns.stop %}{{ i }}{% if i == 2 "
                     "%}{% set ns.stop = true %}{% endif %}{% endfor %}"),
            "012");
}

TEST(JinjaTemplate, MacrosAndBlocks) {
  EXPECT_EQ(rendered("{% macro f(a, b=2, c=a) %}{{ a }}{{ b }}{{ c }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(1) }} "
                     "{{ f(1, c=3) }} {{ f(1, 2, 3, 4, d=5) }}"),
            "121(){} 123(){} 123(4,){'d': 5}");
  EXPECT_EQ(rendered("{% macro f(a) %}{{ a }}{% endmacro %}{{ f(x=1) }}"),
            "error: t: line 1: macro 'f' takes no keyword argument 'x'");
  EXPECT_EQ(rendered("{% macro f() %}{{ x }}{% endmacro %}{% set x = 1 %}{{ f() }}{% set x = 2 %}{{ f() }}"), "12");
  EXPECT_EQ(
      rendered(
          "{% macro box(t) %}[{{ t }}:{{ caller('in') }}]{% endmacro %}{% call(v) box('T') %}{{ v }}!{% endcall %}"),
      "[T:in!]");
  EXPECT_EQ(rendered("{% macro f() %}{{ caller is defined }}{% endmacro %}{{ f() }}"), "False");
  EXPECT_EQ(rendered("{% filter upper|replace('B', '-') %}abc{% endfilter %}{% set t|trim %} x {% endset %}[{{ t }}]{% "
                     "with a = 1, b = 2 %}{{ a + b }}{% endwith %}{{ a }}"),
            "A-C[x]3");
  EXPECT_EQ(rendered("{% generation %}a{{ 1 }}{% endgeneration %}{% block b %}c{% endblock %}"), "a1c");
  EXPECT_EQ(rendered("{% set a, b = 1, [2] %}{{ a }}{{ b }}{% set c = namespace(d={}) %}{% set c.e = 5 %}{{ c.e }}{{ "
                     "c.f is defined }}"),
            "1[2]5False");
  EXPECT_EQ(rendered("{% set d = {} %}{% set d.x = 1 %}"),
            "error: t: line 1: cannot assign attribute on non-namespace object");
  EXPECT_EQ(rendered("{% include 'x' %}"),
            "error: t: line 1: 'include' needs other templates, a chat template has none");
}

TEST(JinjaTemplate, SyntaxErrorsNameTheLine) {
  EXPECT_EQ(rendered("a\nb\n{{ 1 + }}"), "error: t: line 3: unexpected 'end of print statement'");
  EXPECT_EQ(rendered("{{ (1 }}"), "error: t: line 1: unexpected '}', expected ')'");
  EXPECT_EQ(rendered("{{ 'abc }}"), "error: t: line 1: unexpected char ''' at 3");
  EXPECT_EQ(rendered("\n{% frob %}"), "error: t: line 2: Encountered unknown tag 'frob'.");
  EXPECT_EQ(rendered("{# never closed"), "error: t: line 1: Missing end of comment tag");
  EXPECT_EQ(rendered("{{ x ! }}"), "error: t: line 1: unexpected char '!' at 5");
  EXPECT_EQ(rendered("{{ [1) }}"), "error: t: line 1: unexpected ')', expected ']'");
  EXPECT_EQ(rendered("{{ '\\x4' }}"), "error: t: line 1: truncated \\xXX escape");
}

// A template is hostile until it has run: loops, sizes and recursion end in an error, at once.
TEST(JinjaTemplate, BudgetsEndInAnErrorAtOnce) {
  std::string nested = "{% set x = [] %}";
  for (int i = 0; i < 200; ++i) nested += "{% set x = [x, x] %}";
  std::string doubled = "{% set s = 'ab' %}";
  for (int i = 0; i < 60; ++i) doubled += "{% set s = s + s %}";
  const std::string deep_list = std::string("{{ ") + std::string(20000, '[') + std::string(20000, ']') + " }}";
  std::string long_sum = "{{ 1";
  for (int i = 0; i < 20000; ++i) long_sum += " + 1";
  const std::pair<const char*, std::string> cases[] = {
      {"used up its budget of steps",
       "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}"},
      {"Range too big", "{% for i in range(10**9) %}{% endfor %}"},
      {"Range too big", "{{ range(0 - 10**30, 10**30)|length }}"},
      {"longer than", "{{ 'a' * 10**9 }}"},
      {"longer than", "{{ [0] * 10**9 }}"},
      {"longer than", "{{ 'a' * 10**30 }}"},
      {"longer than", "{{ 'a'.ljust(10**9) }}"},
      {"longer than", "{{ 'a'.zfill(10**12) }}"},
      {"longer than", "{{ '%1000000000d' % 1 }}"},
      {"more than", "{{ '%.1000000000f' % 1.5 }}"},
      {"longer than", "{{ '{:1000000000}'.format(1) }}"},
      {"longer than", "{{ '{:>1000000000}'.format('a') }}"},
      {"longer than", "{{ ('a' * 1000000).replace('a', 'b' * 1000) }}"},
      {"longer than", "{{ ('a' * 1000)|center(10**10) }}"},
      {"longer than", "{{ [1]|tojson(indent=10**10) }}"},
      {"longer than", "{{ 'a\nb'|indent(10**10) }}"},
      {"longer than", "{{ '\t'.expandtabs(10**10) }}"},
      {"longer than", doubled},
      {"nested deeper", nested + "{{ x }}"},
      {"nested deeper", deep_list},
      {"nested deeper", long_sum + " }}"},
      {"recursion depth", "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"},
      {"recursion depth",
       "{% macro f(x) %}{% if x %}{% call g(f(x)) %}{% endcall %}{% endif %}{% endmacro %}{% macro g(x) %}{{ f(1) }}{{ "
       "caller() }}{% endmacro %}{{ f(1) }}"},
      {"recursion depth", "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}"},
      {"recursion depth", "{% set ns = namespace() %}{% set ns.me = ns %}{{ ns }}"},
      {"used up its budget",
       "{% set x = range(100000)|list %}{% for i in range(1000) %}{% set y = x + x %}{% endfor %}"},
      {"used up its budget", "{% set x = 'a' * 4000000 %}{% for i in range(1000) %}{% set y = x + 'b' %}{% endfor %}"},
      {"used up its budget", "{% set x = 'a' * 4000000 %}{% for i in range(100000) %}{{ 'b' in x }}{% endfor %}"},
      {"used up its budget", "{% set x = 'é' * 2000000 %}{% for i in range(100000) %}{{ x[i] }}{% endfor %}"},
      {"used up its budget", "{% set x = 'a' * 1000000 %}{% for i in range(100) %}{{ x }}{% endfor %}"},
  };
  for (const auto& [message, source] : cases) {
    const auto begin = std::chrono::steady_clock::now();
    const std::string got = rendered(source);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    EXPECT_TRUE(got.starts_with("error: ") && got.find(message) != std::string::npos)
        << source.substr(0, 100) << " gave " << got.substr(0, 200);
    EXPECT_LT(seconds, kLongest) << source.substr(0, 100);
  }
}

// Searching must be linear whatever the needle.
TEST(JinjaTemplate, HostileNeedles) {
  EXPECT_EQ(rendered("{{ ('a' * 1000000).find('a' * 500000 ~ 'b') }}{{ ('a' * 1000000).rfind('b' ~ 'a' * 500000) }}"),
            "-1-1");
  EXPECT_EQ(rendered("{{ ('a' * 300000).strip('b' * 300000 ~ 'a') }}"), "");
  EXPECT_EQ(rendered("{{ ('a ' * 100000).rsplit(none, 90000)|length }}"), "90001");
}

// A long conversation has a budget that grows with it.
TEST(JinjaTemplate, LongConversations) {
  Json messages = Json::array();
  for (int i = 0; i < 20000; ++i)
    messages.push_back(
        {{"role", i % 2 == 0 ? "user" : "assistant"}, {"content", "message number " + std::to_string(i)}});
  const std::string text =
      rendered("{% for m in messages %}<|{{ m.role }}|>{{ m['content'] | trim }}<|end|>\n{% endfor %}", messages);
  EXPECT_EQ(text.substr(0, 30), "<|user|>message number 0<|end|");
  EXPECT_GT(text.size(), 20000u * 30);
  Json big = {{{"role", "user"}, {"content", std::string(5u << 20, 'x')}}};
  EXPECT_EQ(rendered("{{ messages[0].content|trim ~ '.' }}", big).size(), (5u << 20) + 1);
}

TEST(JinjaTemplate, DeepMessagesAreRefused) {
  Json deep = "end";
  for (int i = 0; i < 300; ++i) deep = Json::array({deep});
  EXPECT_NE(rendered("{{ messages }}", {{{"role", "user"}, {"content", deep}}}).find("nested"), std::string::npos);
}

// Text of the conversation keeps its mark through whatever the template does to it.
TEST(JinjaTemplate, MarksFollowTheText) {
  const Json messages = {{{"role", "user"}, {"content", "  <|im_end|> Ünï \n"}, {"parts", {"a", "b"}}, {"n", 5}}};
  const auto m = [&](std::string_view source) { return marked(source, messages); };
  EXPECT_EQ(m("<|im_start|>{{ messages[0].role }}\n{{ messages[0].content }}<|im_end|>"),
            "<|im_start|>«user»\n«  <|im_end|> Ünï \n»<|im_end|>");
  EXPECT_EQ(m("{{ 'x' + messages[0].content|trim + 'y' }}"), "x«<|im_end|> Ünï»y");
  EXPECT_EQ(m("{{ ('x' + messages[0].content|trim + 'y')[1:4] }}|{{ ('x' ~ messages[0].role ~ 'y')[::-1] }}"),
            "«<|i»|y«resu»x");
  EXPECT_EQ(m("{{ messages[0].content.split('|')|join('+') }}"), "«  <»+«im_end»+«> Ünï \n»");
  EXPECT_EQ(m("{{ messages[0].parts|join(', ') }} {{ '%s=%s' % ('k', messages[0].role) }} {{ '{}:{}'.format('k', "
              "messages[0].role) }}"),
            "«a», «b» k=«user» k:«user»");
  EXPECT_EQ(m("{{ messages[0].content.replace('|', '¦') }}"), "«  <»¦«im_end»¦«> Ünï \n»");
  EXPECT_EQ(m("{{ 'aXb'.replace('X', messages[0].role) }}"), "a«user»b");
  EXPECT_EQ(m("{{ messages[0].role|upper }}{{ messages[0].role|title }}{{ messages[0].role|tojson }}{{ "
              "[messages[0].role] }}"),
            "«USERUser\"user\"»[«'user'»]");
  EXPECT_EQ(m("{{ messages[0]|tojson }}").substr(0, 3), "«{");
  EXPECT_EQ(m("{{ messages[0].n }}{{ messages|length }}{{ 'safe'|tojson }}"), "51\"safe\"");
  EXPECT_EQ(m("{% macro f(x) %}<{{ x }}>{% endmacro %}{{ f(messages[0].role)|trim }}{% set b %}({{ messages[0].role "
              "}}){% endset %}{{ b }}"),
            "<«user»>(«user»)");
  EXPECT_EQ(m("{% for k in messages[0] %}{{ k }},{% endfor %}"), "«role»,«content»,«parts»,«n»,");
  EXPECT_EQ(m("{% for c in messages[0].role %}{{ c }}{% endfor %}{{ messages[0].role|first }}{{ "
              "messages[0].role|list|last }}"),
            "«userur»");
  EXPECT_EQ(m("{{ messages[0].role * 2 }}{{ messages[0].role.center(8, '*') }}{{ messages[0].role|indent(2, true) }}"),
            "«useruser»**«user»**  «user»");
  EXPECT_EQ(m("{{ 'usr' if messages[0].role == 'user' else messages[0].role }}{{ messages[0].role|e }}"), "usr«user»");
}

TEST(JinjaTemplate, TemplateArgumentsAndTokens) {
  ChatOptions options;
  options.bos_token = "<s>";
  options.special_tokens["pad_token"] = "<pad>";
  options.extra = {{"date", "today"}, {"add_generation_prompt", "mine"}};
  EXPECT_EQ(marked("{{ bos_token }}{{ pad_token }}{{ eos_token is defined }}{{ date }}{{ add_generation_prompt }}{{ "
                   "tools is none }}{{ documents is none }}{{ enable_thinking is defined }}",
                   Json::array(), options),
            "<s><pad>False«todaymine»TrueTrueFalse");
  options.extra = Json::array();
  EXPECT_NE(rendered("x", Json::array(), options).find("expected an object"), std::string::npos);
}

// The date in English whatever the locale, and never a fixed one.
TEST(JinjaTemplate, Strftime) {
  ChatOptions options;
  std::tm time{};
  time.tm_year = 126;
  time.tm_mon = 10;
  time.tm_mday = 3;
  time.tm_hour = 14;
  time.tm_min = 5;
  time.tm_wday = 2;
  time.tm_yday = 306;
  options.now = time;
  EXPECT_EQ(rendered("{{ strftime_now('%d %b %Y|%A %B %-d|%H:%M:%S %I %p|%j %U %W %V %G %y|%F %T|%%|%a %e %Q') }}",
                     Json::array(), options),
            "03 Nov 2026|Tuesday November 3|14:05:00 02 PM|307 44 44 45 2026 26|2026-11-03 14:05:00|%|Tue  3 %Q");
  const std::time_t seconds = std::time(nullptr);
  std::tm local{};
  localtime_r(&seconds, &local);
  EXPECT_EQ(rendered("{{ strftime_now('%Y') }}"), std::to_string(local.tm_year + 1900));
}

}  // namespace
}  // namespace crest::text::testing
