// Counts searches for terms, by java-dogstatsd-client:
//
//     java -cp 'java-dogstatsd-client.jar:jnr-unixsocket.jar:…' CountSearch.java localhost:8125 phone 'red shoes'
import com.timgroup.statsd.NonBlockingStatsDClientBuilder;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.List;

public class CountSearch {
    public static void main(String[] args) {
        var host = args[0].split(":")[0];
        var port = Integer.parseInt(args[0].split(":")[1]);
        var terms = List.of(args).subList(1, args.length);

        var statsd = new NonBlockingStatsDClientBuilder().hostname(host).port(port)
            .prefix("shop.search-terms.hot_param").aggregationFlushInterval(100).blocking(true).build();
        for (var term : terms)
            statsd.increment("GET%20/search?q=" + encode(term));
        statsd.close(); // without blocking(true) it drops what is not sent yet
    }

    // What is not A-Z a-z 0-9 - . _ ~ becomes %HH in a key; a line has no % and no dot.
    static String encode(String value) {
        return URLEncoder.encode(value, StandardCharsets.UTF_8)
            .replace("+", "%20").replace("*", "%2A").replace("%7E", "~")
            .replace("%", "%25").replace(".", "%2E");
    }
}
