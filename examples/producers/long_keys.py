# Writes keys as lines hold them, long ones cut as instances with hotparam cut them:
#
#     echo 'GET /search?q=red%20shoes' | python long_keys.py strict
import hashlib
import re
import sys
from itertools import accumulate


def encode(key, encoding):
    if encoding == "strict":
        return re.sub("[^A-Za-z0-9=-]", lambda c: "_%02X" % ord(c[0]), key)
    return re.sub(r"[^!-~]|[.:|@#,;\[\]%]", lambda c: "%%%02X" % ord(c[0]), key)


# An end, never in half a %HH, and instead of the rest half of the SHA-256 of the whole.
def cut(key, end):
    end = key.rfind("%", end - 2, end) if "%" in key[end - 2:end] else end
    return key[:end] + "~" + hashlib.sha256(key.encode()).hexdigest()[:32]


def fit(key, encoding):
    limit, room = (251, 216) if encoding == "strict" else (1024, 991)
    if len(key) > 512:
        key = cut(key, 479)
    if len(encode(key, encoding)) > limit:
        sizes = accumulate(len(encode(c, encoding)) for c in key)
        key = cut(key, sum(size <= room for size in sizes))
    return encode(key, encoding)


for line in sys.stdin:
    print(fit(line.rstrip("\n"), sys.argv[1]))
