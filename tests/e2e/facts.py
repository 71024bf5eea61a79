"""What bin/facts printed -> a flat table of facts that can be compared between runtimes."""
import json
import os
import re

STATUS_FIELDS = ("Uid", "Gid", "Groups", "Umask", "NoNewPrivs", "Seccomp", "Seccomp_filters", "CapInh", "CapPrm",
                 "CapEff", "CapBnd", "CapAmb", "SigBlk", "SigIgn", "Cpus_allowed_list", "Speculation_Store_Bypass")


def own_namespaces():
    return {kind: os.readlink(f"/proc/self/ns/{kind}") for kind in ("cgroup", "ipc", "mnt", "net", "pid", "time",
                                                                     "user", "uts")}


def mounts(mountinfo):
    """proc(5): ids and device numbers say nothing; peer groups have no number here."""
    table = {}
    for line in mountinfo.splitlines():
        left, right = line.split(" - ", 1)
        words = left.split(" ")
        propagation = sorted(word.split(":")[0] for word in words[6:]) or ["private"]
        kind, source, options = (right.split(" ") + [""])[:3]
        target = words[4]
        while target in table:  # stacked: the lower ones come first
            target += "+"
        table[target] = {"root": words[3], "options": ",".join(sorted(words[5].split(","))), "propagation": propagation,
                         "type": kind, "source": source, "super": ",".join(sorted(options.split(",")))}
    return table


def which_namespace(kind, link, joined):
    if link == joined.get(kind):
        return "joined"
    return "host" if link == own_namespaces()[kind] else "own"


def descriptor(entry):
    target = re.sub(r"\[\d+\]", "", str(entry["target"]))
    return {**entry, "target": target}


def keyring(text):
    if isinstance(text, int):
        return text
    return ";".join(text.split(";")[:4])


def normalise(raw, joined):
    facts = json.loads(raw)
    status = dict(line.split(":\t", 1) for line in facts["status"].splitlines() if ":\t" in line)
    session = facts["session"]
    facts["namespaces"] = {kind: which_namespace(kind, link, joined) for kind, link in facts["namespaces"].items()}
    facts["mounts"] = mounts(facts.pop("mountinfo"))
    facts["status"] = {name: status.get(name, "").strip() for name in STATUS_FIELDS}
    facts["pid_namespaces"] = len(status["NSpid"].split())
    facts["cgroup"] = {line.split(":", 2)[1]: line.split(":", 2)[2] for line in facts["cgroup"].splitlines()}
    facts["descriptors"] = {number: descriptor(entry) for number, entry in facts["descriptors"].items()}
    facts["keyring"] = keyring(facts["keyring"])
    facts["env"] = sorted(facts["env"])
    facts["session"] = {"init": session["pid"] == 1, "leader": session["sid"] == session["pid"],
                        "group": session["pgid"] == session["pid"], "orphan": session["ppid"] == 0,
                        "tty_errno": session["tty_errno"], "isatty": session["isatty"]}
    return flatten(facts)


def flatten(value, path=""):
    if isinstance(value, dict):
        table = {}
        for key, member in value.items():
            table.update(flatten(member, f"{path}{' ' if path else ''}{key}"))
        return table
    return {path: json.dumps(value)}
