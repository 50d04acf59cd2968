# Sends each key of standard input (hexadecimal) to each topic, in the partition that
# kafka-python chooses: keys.py BROKERS TOPIC…
import sys

from kafka import KafkaProducer

producer = KafkaProducer(bootstrap_servers=sys.argv[1])
for line in sys.stdin:
    for topic in sys.argv[2:]:
        producer.send(topic, key=bytes.fromhex(line))
producer.close()
