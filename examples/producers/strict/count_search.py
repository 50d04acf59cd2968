# Counts searches for terms in a StatsD of another make, by statsd:
#
#     python count_search.py localhost:8125 phone 'red shoes'
import re
import sys
from urllib.parse import quote

from statsd import StatsClient


# What is not A-Z a-z 0-9 - . _ ~ becomes %HH in a key, and then what is not A-Z a-z 0-9 - _HH.
def strict(value):
    return re.sub("[^A-Za-z0-9-]", lambda c: "_%02X" % ord(c[0]), quote(value, safe=""))


address, *terms = sys.argv[1:]
host, port = address.split(":")

statsd = StatsClient(host, int(port), prefix="shop.search-terms.hot_param")
for term in terms:
    statsd.incr("GET_20_2Fsearch_3Fq=" + strict(term))
statsd.close()
