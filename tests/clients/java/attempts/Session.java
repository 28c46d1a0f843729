import java.time.Duration;
import java.util.Properties;

/** Who attempts something, at which broker, and how long its clients wait for anything. */
final class Session {
    static final String DONE = "done";
    static final String NOTHING = "nothing";

    final Duration patience;
    private final String bootstrap;
    private final String user;
    private final String password;
    private final long deadline;

    Session(String bootstrap, String user, String password, Duration patience) {
        this.bootstrap = bootstrap;
        this.user = user;
        this.password = password;
        this.patience = patience;
        this.deadline = System.nanoTime() + patience.toNanos();
    }

    boolean isOver() {
        return System.nanoTime() > deadline;
    }

    /** The configuration of any client, with `more` entries given as name, value, name, value. */
    Properties config(String... more) {
        Properties config = new Properties();
        String millis = Long.toString(patience.toMillis());
        config.put("bootstrap.servers", bootstrap);
        config.put("request.timeout.ms", millis);
        config.put("default.api.timeout.ms", millis);
        config.put("security.protocol", "SASL_PLAINTEXT");
        config.put("sasl.mechanism", "PLAIN");
        config.put("sasl.jaas.config", String.format(
            "org.apache.kafka.common.security.plain.PlainLoginModule required"
                + " username=\"%s\" password=\"%s\";", user, password));
        for (int i = 0; i < more.length; i += 2) {
            config.put(more[i], more[i + 1]);
        }
        return config;
    }
}
