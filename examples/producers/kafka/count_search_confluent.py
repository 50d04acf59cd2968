# Counts one search for a term, by confluent-kafka:
#
#     python count_search_confluent.py broker:9092 phone
import sys
from urllib.parse import quote

from confluent_kafka import Producer


# What is not A-Z a-z 0-9 - . _ ~ becomes %HH in a key; a line has no % and no dot.
def encode(value):
    return quote(value, safe="").replace("%", "%25").replace(".", "%2E")


brokers, term = sys.argv[1:]

producer = Producer({"bootstrap.servers": brokers, "partitioner": "murmur2_random"})
key = "GET%20/search?q=" + encode(term)
line = "shop.search-terms.hot_param." + key + ":1|c"
producer.produce("hotparam.counters", key=key.encode(), value=line.encode())
producer.flush()
