# Writes the keys that a rule by names makes of queries, a space between two:
#
#     echo 'q=phone&q=tablet&page=2' | python several_values.py 'GET /search' q page
import sys
from itertools import islice, product
from urllib.parse import parse_qsl, quote


# A key for each pairing of the names' distinct values: eight, and one for all beyond.
def keys(route, names, params):
    values = [sorted({v for n, v in params if n == name}, key=str.encode) for name in names]
    present = [[(n, v) for v in vs] for n, vs in zip(names, values) if vs]
    pairings = list(islice(product(*present), 9)) if present else []
    for pairing in pairings[:8]:
        pairing = sorted(pairing, key=lambda p: p[0].encode())
        yield route + "?" + "&".join(quote(n, safe="") + "=" + quote(v, safe="") for n, v in pairing)
    if len(pairings) > 8:
        yield route + "?~more"


for line in sys.stdin:
    params = parse_qsl(line.rstrip("\n"), keep_blank_values=True)
    print(" ".join(keys(sys.argv[1], sys.argv[2:], params)).replace("GET ", "GET%20"))
