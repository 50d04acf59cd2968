# Counts searches for terms, signed, by StatsD over UDP, and prints the headers of the record
# that would say the same to Kafka:
#
#     python signed.py localhost:8125 hotparam.key phone 'red shoes'
import hashlib
import hmac
import secrets
import socket
import sys
import time
from urllib.parse import quote


# What is not A-Z a-z 0-9 - . _ ~ becomes %HH in a key; a line has no % and no dot.
def encode(value):
    return quote(value, safe="").replace("%", "%25").replace(".", "%2E")


def mac(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()[:32]


# A packet of at most 1,432 bytes. life is new with each start of the program, seq counts
# its packets from 1, and lines are those that have no meta line before them else.
def packet(key, instance, life, seq, lines):
    now, text = time.time_ns(), "\n".join(lines)
    meta = f"hotparam.meta:1|c|#v:1,i:{instance},e:{life:x},s:{seq},t:{now},h:1,u:0,w:{now},m:{len(text):04x}."
    return (meta + mac(key, meta + text) + "\n" + text).encode()


# The headers of a record, seq of those to this partition; partitions is how many there are.
def headers(key, namespace, instance, life, seq, partition, partitions, lines):
    now, text = time.time_ns(), "\n".join(lines)
    fields = {
        "hotparam-schema": "1", "hotparam-namespace": namespace, "hotparam-instance": instance,
        "hotparam-incarnation": f"{life:x}", "hotparam-sequence": str(seq), "hotparam-start": str(now),
        "hotparam-held": "1", "hotparam-unsent": "0", "hotparam-partitions": str(partitions), "hotparam-sent": str(now),
    }
    signed = f"hotparam.record:{partition}\n" + "".join(f"{name}:{value}\n" for name, value in fields.items()) + "\n" + text
    return {**fields, "hotparam-mac": mac(key, signed)}


address, key_file, *terms = sys.argv[1:]
host, port = address.split(":")
with open(key_file, "rb") as file:
    key = file.readline().rstrip(b"\r\n")  # the first signs

life = secrets.randbits(64)
lines = [f"shop.search-terms.hot_param.GET%20/search?q={encode(term)}:1|c" for term in terms]
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(packet(key, "py-1", life, 1, lines), (host, int(port)))

for name, value in headers(key, "shop", "py-1", life, 1, 3, 12, lines).items():
    print(name, value)
