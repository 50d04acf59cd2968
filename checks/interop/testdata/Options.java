// Counts a search for a term n times, by java-dogstatsd-client with tags and more, at
// the address in DD_DOGSTATSD_URL: java Options.java N TERM
import com.timgroup.statsd.NonBlockingStatsDClientBuilder;
import com.timgroup.statsd.ServiceCheck;

public class Options {
    public static void main(String[] args) throws Exception {
        var statsd = new NonBlockingStatsDClientBuilder()
            .prefix("shop.search-terms.hot_param").blocking(true).telemetryFlushInterval(20)
            .constantTags("env:prod", "version:1.2").containerID("0123456789abcdef").build();
        for (var i = 0; i < Integer.parseInt(args[0]); i++)
            statsd.increment("GET%20/search?q=" + args[1], "n:" + i % 2);
        statsd.recordServiceCheckRun(ServiceCheck.builder().withName("shop.search-terms.hot_param.up").withStatus(ServiceCheck.Status.OK).build());
        Thread.sleep(100); // until it has told of itself
        statsd.close();
    }
}
