import com.datastax.driver.core.Cluster;
import com.datastax.driver.core.PreparedStatement;
import com.datastax.driver.core.Row;
import com.datastax.driver.core.Session;
import com.datastax.driver.core.exceptions.DriverException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.Vector;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.DBException;
import site.ycsb.Status;
import site.ycsb.StringByteIterator;

/**
 * Lets YCSB's core workloads read, insert and update rows of a Cassandra on this machine.
 *
 * <p>The property {@code cassandra.port} is its port. All threads share one session.
 */
public class CassandraBinding extends DB {
  private static final String KEY = "id";
  private static final String KEYSPACE = "ycsb";
  private static final Map<String, PreparedStatement> STATEMENTS = new ConcurrentHashMap<>();
  private static Cluster cluster;
  private static Session session;
  private static int threads;

  @Override
  public void init() throws DBException {
    synchronized (CassandraBinding.class) {
      threads++;
      if (session != null) {
        return;
      }
      try {
        connect();
      } catch (DriverException error) {
        throw new DBException(error);
      }
    }
  }

  private void connect() {
    int port = Integer.parseInt(getProperties().getProperty("cassandra.port"));
    cluster = Cluster.builder()
        .addContactPoint("127.0.0.1")
        .withPort(port)
        .withoutJMXReporting()
        .withoutMetrics()
        .build();
    session = cluster.connect();
    session.execute("CREATE KEYSPACE IF NOT EXISTS " + KEYSPACE + " WITH replication ="
        + " {'class': 'SimpleStrategy', 'replication_factor': 1}");
    int count = Integer.parseInt(getProperties().getProperty("fieldcount", "10"));
    String fields = IntStream.range(0, count)
        .mapToObj(number -> "field" + number + " text")
        .collect(Collectors.joining(", "));
    String table = getProperties().getProperty("table", "usertable");
    session.execute("CREATE TABLE IF NOT EXISTS " + name(table)
        + " (" + KEY + " text PRIMARY KEY, " + fields + ")");
  }

  @Override
  public void cleanup() {
    synchronized (CassandraBinding.class) {
      threads--;
      if (threads == 0) {
        cluster.close();
      }
    }
  }

  @Override
  public Status read(
      String table, String key, Set<String> fields, Map<String, ByteIterator> result) {
    String columns = fields == null ? "*" : String.join(", ", fields);
    try {
      Row row = session.execute(
          prepared("SELECT " + columns + " FROM " + name(table) + " WHERE " + KEY + " = ?")
              .bind(key)).one();
      if (row == null) {
        return Status.NOT_FOUND;
      }
      row.getColumnDefinitions().forEach(column -> {
        if (!column.getName().equals(KEY)) {
          result.put(column.getName(),
              new StringByteIterator(row.getString(column.getName())));
        }
      });
      return Status.OK;
    } catch (DriverException error) {
      return failed(error);
    }
  }

  @Override
  public Status update(String table, String key, Map<String, ByteIterator> values) {
    // In Cassandra an INSERT of some columns leaves the others as they are.
    return insert(table, key, values);
  }

  @Override
  public Status insert(String table, String key, Map<String, ByteIterator> values) {
    List<String> columns = new ArrayList<>(List.of(KEY));
    List<Object> bound = new ArrayList<>(List.of(key));
    values.forEach((column, value) -> {
      columns.add(column);
      bound.add(value.toString());
    });
    String marks = columns.stream().map(column -> "?").collect(Collectors.joining(", "));
    try {
      session.execute(
          prepared("INSERT INTO " + name(table) + " (" + String.join(", ", columns)
              + ") VALUES (" + marks + ")").bind(bound.toArray()));
      return Status.OK;
    } catch (DriverException error) {
      return failed(error);
    }
  }

  @Override
  public Status delete(String table, String key) {
    return Status.NOT_IMPLEMENTED;
  }

  @Override
  public Status scan(String table, String start, int count, Set<String> fields,
      Vector<java.util.HashMap<String, ByteIterator>> result) {
    return Status.NOT_IMPLEMENTED;
  }

  private static String name(String table) {
    return KEYSPACE + "." + table;
  }

  private static PreparedStatement prepared(String statement) {
    return STATEMENTS.computeIfAbsent(statement, session::prepare);
  }

  private static Status failed(DriverException error) {
    System.err.println(error);
    return Status.ERROR;
  }
}
