# Counts one search for a term, by kafka-python:
#
#     python count_search.py broker:9092 phone
import sys
from urllib.parse import quote

from kafka import KafkaProducer


# What is not A-Z a-z 0-9 - . _ ~ becomes %HH in a key; a line has no % and no dot.
def encode(value):
    return quote(value, safe="").replace("%", "%25").replace(".", "%2E")


brokers, term = sys.argv[1:]

producer = KafkaProducer(bootstrap_servers=brokers)
key = "GET%20/search?q=" + encode(term)
line = "shop.search-terms.hot_param." + key + ":1|c"
producer.send("hotparam.counters", key=key.encode(), value=line.encode())
producer.close()
