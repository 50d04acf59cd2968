// Counts one search for a term, by Kafka's own client:
//
//     java -cp 'kafka-clients.jar:slf4j-api.jar:…' CountSearch.java broker:9092 phone
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

public class CountSearch {
    public static void main(String[] args) {
        var brokers = args[0];
        var term = args[1];

        var settings = Map.<String, Object>of("bootstrap.servers", brokers);
        var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
        var key = "GET%20/search?q=" + encode(term);
        producer.send(new ProducerRecord<>("hotparam.counters", key, "shop.search-terms.hot_param." + key + ":1|c"));
        producer.close();
    }

    // What is not A-Z a-z 0-9 - . _ ~ becomes %HH in a key; a line has no % and no dot.
    static String encode(String value) {
        return URLEncoder.encode(value, StandardCharsets.UTF_8)
            .replace("+", "%20").replace("*", "%2A").replace("%7E", "~")
            .replace("%", "%25").replace(".", "%2E");
    }
}
