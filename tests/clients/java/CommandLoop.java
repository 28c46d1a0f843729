import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs many commands of Kafka's tools in one JVM. Each line of standard input holds the class of a
 * tool, the command's standard input (with record separators for its line ends) and the arguments,
 * separated by tabs; each is answered by a line of JSON with the exit status and what the command
 * printed.
 */
public final class CommandLoop {
    private CommandLoop() {
    }

    /** Stands in for the end of the process: what a tool does after it has no effect. */
    private static final class Exited extends RuntimeException {
        private static final long serialVersionUID = 1L;
        private final int status;
        private final String out;
        private final String err;

        Exited(int status) {
            this.status = status;
            this.out = OUT.toString(StandardCharsets.UTF_8);
            this.err = ERR.toString(StandardCharsets.UTF_8);
        }
    }

    /**
     * Loads the classes of Kafka's tools anew, since some of them count in static fields what they
     * have done; all others are those of this program.
     */
    private static final class Tools extends URLClassLoader {
        Tools(Class<?> tool) {
            super(new URL[] {tool.getProtectionDomain().getCodeSource().getLocation()});
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (name.startsWith("org.apache.kafka.tools.")) {
                synchronized (getClassLoadingLock(name)) {
                    Class<?> loaded = findLoadedClass(name);
                    try {
                        return loaded == null ? findClass(name) : loaded;
                    } catch (ClassNotFoundException e) {
                        return super.loadClass(name, resolve);
                    }
                }
            }
            return super.loadClass(name, resolve);
        }
    }

    private static final List<Runnable> HOOKS = new ArrayList<>();
    private static final ByteArrayOutputStream OUT = new ByteArrayOutputStream();
    private static final ByteArrayOutputStream ERR = new ByteArrayOutputStream();
    private static Exited exited;

    public static void main(String[] args) throws Exception {
        Exit.setExitProcedure((status, message) -> {
            // A tool may catch this, print that, and exit once more.
            if (exited == null) {
                exited = ended(status);
            }
            throw exited;
        });
        Exit.setShutdownHookAdder((name, hook) -> HOOKS.add(hook));
        PrintStream answers = System.out;
        BufferedReader commands =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String command; (command = commands.readLine()) != null; ) {
            String[] words = command.split("\t", -1);
            String given = words[1].replace('\u001e', '\n');
            System.setIn(new ByteArrayInputStream(given.getBytes(StandardCharsets.UTF_8)));
            answers.println(run(words[0], Arrays.copyOfRange(words, 2, words.length)));
        }
    }

    private static Exited ended(int status) {
        HOOKS.forEach(Runnable::run);
        return new Exited(status);
    }

    private static String run(String tool, String[] args) throws Exception {
        exited = null;
        HOOKS.clear();
        OUT.reset();
        ERR.reset();
        System.setOut(new PrintStream(OUT, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(ERR, true, StandardCharsets.UTF_8));
        Exited end;
        try (Tools tools = new Tools(Class.forName(tool))) {
            Thread.currentThread().setContextClassLoader(tools);
            tools.loadClass(tool).getMethod("main", String[].class).invoke(null, (Object) args);
            end = ended(0);
        } catch (InvocationTargetException e) {
            if (exited == null) {
                // With this a JVM ends that runs one tool alone.
                e.getCause().printStackTrace();
                exited = new Exited(1);
            }
            end = exited;
        }
        return String.format("{\"status\":%d,\"out\":%s,\"err\":%s}", end.status,
            Json.string(end.out), Json.string(end.err));
    }
}
