import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs many commands of Kafka's tools in one JVM. Each line of standard input holds the class of a
 * tool and its arguments, separated by tabs; each is answered by a line of JSON with the exit status
 * and what the command printed.
 */
public final class CommandLoop {
    private CommandLoop() {
    }

    /** Stands in for the end of the process. */
    private static final class Exited extends RuntimeException {
        private static final long serialVersionUID = 1L;
        private final int status;

        Exited(int status) {
            this.status = status;
        }
    }

    public static void main(String[] args) throws Exception {
        Exit.setExitProcedure((status, message) -> {
            throw new Exited(status);
        });
        PrintStream answers = System.out;
        BufferedReader commands =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String command; (command = commands.readLine()) != null; ) {
            String[] words = command.split("\t");
            answers.println(run(words[0], Arrays.copyOfRange(words, 1, words.length)));
        }
    }

    private static String run(String tool, String[] args) throws Exception {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        ByteArrayOutputStream err = new ByteArrayOutputStream();
        System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
        int status = 0;
        try {
            Class.forName(tool).getMethod("main", String[].class).invoke(null, (Object) args);
        } catch (InvocationTargetException e) {
            if (!(e.getCause() instanceof Exited)) {
                throw e;
            }
            status = ((Exited) e.getCause()).status;
        }
        return String.format("{\"status\":%d,\"out\":%s,\"err\":%s}", status,
            Json.string(out.toString(StandardCharsets.UTF_8)),
            Json.string(err.toString(StandardCharsets.UTF_8)));
    }
}
