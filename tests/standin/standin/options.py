"""Options as argparse reads them (`--a v`, `--a=v`), without its start-up time."""


class Usage(Exception):
    """A command line that the real command refuses with status 2."""


def run_id_valid(text):
    allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
    return (0 < len(text) <= 64 and text[0] in allowed
            and all(c in allowed + "_.-" for c in text) and text.lower() != "latest")


def check_run_id(text):
    if not run_id_valid(text):
        raise Usage("argument RUN_ID: invalid run ID: %r" % text)
    return text


def parse(argv, valued=(), flags=(), repeated=()):
    """Options by name (without dashes), positionals, and what stands after `--`."""
    options, words, rest = {name: [] for name in repeated}, [], None
    i = 0
    while i < len(argv):
        word = argv[i]
        i += 1
        if word == "--":
            rest = argv[i:]
            break
        if not word.startswith("--"):
            if word.startswith("-") and len(word) > 1:
                raise Usage("unrecognized arguments: %s" % word)
            words.append(word)
            continue
        name, equals, value = word[2:].partition("=")
        if name in flags:
            if equals:
                raise Usage("argument --%s: ignored explicit argument %r" % (name, value))
            options[name] = True
        elif name in valued or name in repeated:
            if not equals:
                if i >= len(argv) or argv[i].startswith("--"):
                    raise Usage("argument --%s: expected one argument" % name)
                value = argv[i]
                i += 1
            if name in repeated:
                options[name].append(value)
            else:
                options[name] = value
        else:
            raise Usage("unrecognized arguments: %s" % word)
    return options, words, rest


def one_run_id(words, more=0):
    if len(words) != 1 + more:
        raise Usage("the following arguments are required: RUN_ID" if len(words) < 1 + more
                    else "unrecognized arguments: %s" % " ".join(words[1 + more:]))
    return check_run_id(words[0])


def integer(options, name, default, low=None, high=None):
    text = options.get(name)
    if text is None:
        return default
    try:
        value = int(text)
    except ValueError:
        raise Usage("argument --%s: invalid int value: %r" % (name, text)) from None
    if (low is not None and value < low) or (high is not None and value > high):
        raise Usage("argument --%s: invalid value: %r" % (name, text))
    return value
