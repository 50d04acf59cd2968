// Counts searches for terms in a StatsD of another make, by java-dogstatsd-client:
//
//     java -cp 'java-dogstatsd-client.jar:jnr-unixsocket.jar:…' CountSearch.java localhost:8125 phone 'red shoes'
import com.timgroup.statsd.NonBlockingStatsDClientBuilder;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.regex.Pattern;

public class CountSearch {
    public static void main(String[] args) {
        var host = args[0].split(":")[0];
        var port = Integer.parseInt(args[0].split(":")[1]);
        var terms = List.of(args).subList(1, args.length);

        // Without tags, container id and figures of its own: what the Etsy StatsD does not read.
        var statsd = new NonBlockingStatsDClientBuilder().hostname(host).port(port)
            .prefix("shop.search-terms.hot_param").aggregationFlushInterval(100).blocking(true)
            .originDetectionEnabled(false).enableTelemetry(false).build();
        for (var term : terms)
            statsd.increment("GET_20_2Fsearch_3Fq=" + strict(term));
        statsd.close();
    }

    // What is not A-Z a-z 0-9 - . _ ~ becomes %HH in a key, and then what is not A-Z a-z 0-9 - _HH.
    static String strict(String value) {
        var text = URLEncoder.encode(value, StandardCharsets.UTF_8).replace("+", "%20").replace("*", "%2A").replace("%7E", "~");
        return Pattern.compile("[^A-Za-z0-9-]").matcher(text).replaceAll(c -> String.format("_%02X", (int) c.group().charAt(0)));
    }
}
