# Sends each key of standard input (hexadecimal) to each topic, in the partition that
# confluent-kafka chooses when it is told to do as Java does:
# keys_confluent.py BROKERS TOPIC…
import sys

from confluent_kafka import Producer

producer = Producer({"bootstrap.servers": sys.argv[1], "partitioner": "murmur2_random"})
for line in sys.stdin:
    for topic in sys.argv[2:]:
        producer.produce(topic, key=bytes.fromhex(line))
    producer.poll(0)
producer.flush()
