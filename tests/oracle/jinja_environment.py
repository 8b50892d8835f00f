"""jinja2 set up as transformers sets it up for chat templates, and a driver of Crest's renderer."""
import datetime
import json
import subprocess

import jinja2
import jinja2.ext
import jinja2.sandbox

NOW = datetime.datetime(2026, 11, 3, 4, 5, 6)


class Generation(jinja2.ext.Extension):
    """{% generation %} … {% endgeneration %}: marks the assistant's words, prints its body."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


def _raise(message):
    raise jinja2.TemplateError(message)


def _tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = _tojson
    env.globals["raise_exception"] = _raise
    env.globals["strftime_now"] = NOW.strftime
    return env


ENVIRONMENT = environment()


def expected(request):
    """(text, None) or (None, exception) of jinja2 for a request as the driver takes it."""
    variables = {"messages": request.get("messages", []), "tools": request.get("tools") or None, "documents": None,
                 "add_generation_prompt": request.get("add_generation_prompt", False)}
    for name in ("enable_thinking", "bos_token", "eos_token"):
        if name in request:
            variables[name] = request[name]
    variables.update(request.get("extra", {}))
    try:
        return ENVIRONMENT.from_string(request["template"]).render(**variables), None
    except RecursionError as error:
        return None, error
    except Exception as error:  # whatever a template can raise
        return None, error


class Driver:
    """Crest's renderer as a child process."""

    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8",
                                        errors="surrogateescape")

    def __call__(self, request):
        request = dict(request, now=NOW.strftime("%Y-%m-%dT%H:%M:%S"))
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the driver died on: " + json.dumps(request)[:2000])
        answer = json.loads(line)
        if "error" in answer:
            return None, answer["error"], []
        return "".join(text for text, _ in answer["segments"]), None, answer["segments"]
