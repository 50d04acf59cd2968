import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.regex.Pattern;

/**
 * Asks a guard about requests: java Check.java http://127.0.0.1:9133 '/search?q=phone' ...
 * Prints the status of each: 200 if it may pass. A guard that is away or slow refuses nothing.
 * A program with a JSON library reads the rest of the answer by it.
 */
class Check {
    static final Duration timeout = Duration.ofMillis((long) (1000 * Double.parseDouble(System.getenv().getOrDefault("HOTPARAM_TIMEOUT", "0.5"))));
    static final HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1)
            .connectTimeout(timeout).build();
    static final Pattern refused = Pattern.compile("^\\{\"allowed\":false,.*?\"status\":(\\d+)");

    static String status(String base, String uri) {
        String quoted = uri.replace("\\", "\\\\").replace("\"", "\\\"");
        var request = HttpRequest.newBuilder(URI.create(base + "/v1/check"))
                .timeout(timeout).header("Content-Type", "application/json")
                .POST(HttpRequest.BodyPublishers.ofString("{\"method\":\"GET\",\"uri\":\"" + quoted + "\",\"addr\":\"192.0.2.1\"}"))
                .build();
        try {
            var answer = refused.matcher(client.send(request, BodyHandlers.ofString()).body());
            return answer.find() ? answer.group(1) : "200";
        } catch (Exception away) {
            return "200";
        }
    }

    public static void main(String[] args) {
        for (int i = 1; i < args.length; i++) {
            System.out.println(status(args[0], args[i]));
        }
    }
}
