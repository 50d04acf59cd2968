// Sends each key of standard input (hexadecimal) to each topic, in the partition that
// Kafka's own producer chooses: Keys.java BROKERS TOPIC…
import java.util.HexFormat;
import java.util.Map;
import java.util.Scanner;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class Keys {
    public static void main(String[] args) {
        var settings = Map.<String, Object>of("bootstrap.servers", args[0]);
        try (var producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
            var keys = new Scanner(System.in)) {
            while (keys.hasNextLine()) {
                var key = HexFormat.of().parseHex(keys.nextLine());
                for (var i = 1; i < args.length; i++) {
                    producer.send(new ProducerRecord<>(args[i], key, null));
                }
            }
        }
    }
}
