//! What URLs and environments are read as, and how they are refused.

use super::*;

fn read(url: &str) -> RedisOptions {
    RedisOptions::from_url(url).unwrap()
}

fn why(url: &str) -> String {
    RedisOptions::from_url(url).unwrap_err().to_string()
}

fn with_env(url: Option<&str>, variables: &[(&str, &str)]) -> Result<RedisOptions, Error> {
    let find =
        |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    RedisOptions::gather(url, find)
}

fn login(user: Option<&str>, password: Option<&str>) -> Login {
    Login { user: user.map(str::to_owned), password: password.map(Secret::from) }
}

fn single(host: &str, port: u16) -> Endpoint {
    Endpoint::Single(Address::tcp(host, port))
}

#[test]
fn a_single_server_has_defaults_for_everything() {
    let options = read("redis://db.example");
    assert_eq!(options.endpoint, single("db.example", 6_379));
    assert_eq!((options.db, options.tls.is_some(), options.login.is_some()), (0, false, false));
    assert_eq!(options.read_timeout, Duration::from_millis(500));
    assert_eq!(options.write_timeout, Duration::from_secs(1));
    assert_eq!(read("redis://").endpoint, single("localhost", 6_379));
    assert_eq!(read("redis://:7000/").endpoint, single("localhost", 7_000));
    assert_eq!(read("redis://[::1]:7000/2").endpoint, single("::1", 7_000));
    assert_eq!(read("redis://[::1]").describe(), "redis:[::1]:6379/0");
}

#[test]
fn a_user_counts_and_is_decoded() {
    let options = read("rediss://wor%40ker:p%3a%2f%25@h:1/3");
    assert_eq!(options.login, login(Some("wor@ker"), Some("p:/%")));
    assert_eq!((options.db, options.tls), (3, Some(Tls::default())));
    assert_eq!(read("redis://:pw@h").login, login(None, Some("pw")));
    assert_eq!(read("redis://me@h").login, login(Some("me"), None));
    assert_eq!(read("redis://:a:b@h").login, login(None, Some("a:b")));
}

#[test]
fn a_unix_socket_is_written_in_two_ways() {
    let socket = Endpoint::Single(Address::Unix(PathBuf::from("/run/a b.sock")));
    let options = read("redis+unix:///run/a%20b.sock?db=2");
    assert_eq!((options.endpoint, options.db), (socket.clone(), 2));
    let options = read("redis-socket://:pw@/run/a b.sock?db=2");
    assert_eq!((options.endpoint, options.db, options.login), (socket, 2, login(None, Some("pw"))));
    assert_eq!(read("redis+unix:///r.sock?user=u&pass=p%40").login, login(Some("u"), Some("p@")));
    assert!(read("redis-socket:///run/a@b.sock").describe().starts_with("redis:unix:/run/a@b.sock"));
    assert!(why("redis+unix://run/redis.sock").contains("three slashes"));
    assert!(why("redis-socket://").contains("three slashes"));
}

#[test]
fn the_password_before_sentinels_is_theirs() {
    let options = read("redis-sentinel://:guard@s1,s2:5000/4?master=main&node_user=w&node_password=d%40ta");
    let sentinels = vec![Address::tcp("s1", 26_379), Address::tcp("s2", 5_000)];
    let theirs = login(None, Some("guard"));
    assert_eq!(options.endpoint, Endpoint::Sentinel { sentinels, master: "main".into(), login: theirs });
    assert_eq!((options.db, options.login.clone()), (4, login(Some("w"), Some("d@ta"))));
    assert_eq!(options.describe(), "redis-sentinel:main@s1:26379,s2:5000/4");
    assert!(why("redis-sentinel://s1").contains("?master=NAME"));
    assert!(why("redis://h?master=main").contains("for redis-sentinel:// only"));
}

#[test]
fn a_cluster_has_seeds_and_one_database() {
    let options = read("rediss-cluster://u:p@a:1,b");
    assert_eq!(
        options.endpoint,
        Endpoint::Cluster { seeds: vec![Address::tcp("a", 1), Address::tcp("b", 6_379)] }
    );
    assert!(options.tls.is_some());
    assert_eq!(options.describe(), "rediss-cluster:a:1,b:6379");
    assert!(why("redis-cluster://a/1").contains("only database 0, this is 1"));
    assert!(why("redis://a,b").contains("redis-cluster://"));
}

#[test]
fn parameters_set_what_they_say() {
    let options = read(
        "rediss://h?op_timeout_ms=100&connect_timeout_ms=7&silence_max_ms=8&backoff_min_ms=1&backoff_max_ms=9&enqueue_replicas=2&spin_max_us=3\
         &tls_ca_file=/etc/ca.pem&tls_cert_file=c.pem&tls_key_file=k.pem&tls_server_name=name&db=5",
    );
    let ms = Duration::from_millis;
    assert_eq!((options.read_timeout, options.write_timeout), (ms(100), ms(200)));
    assert_eq!((options.connect_timeout, options.silence_max), (ms(7), ms(8)));
    assert_eq!((options.backoff_min, options.backoff_max, options.db), (ms(1), ms(9), 5));
    assert_eq!((options.enqueue_replicas, options.spin_max), (2, Duration::from_micros(3)));
    let tls = options.tls.unwrap();
    assert_eq!(tls.ca_file, Some("/etc/ca.pem".into()));
    assert_eq!((tls.cert_file, tls.key_file), (Some("c.pem".into()), Some("k.pem".into())));
    assert_eq!((tls.server_name.as_deref(), tls.insecure), (Some("name"), false));
    let options = read("rediss://h?op_timeout_ms=100&write_timeout_ms=5&tls_insecure=true");
    assert_eq!((options.read_timeout, options.write_timeout), (ms(100), ms(5)));
    assert!(options.tls.unwrap().insecure);
}

#[test]
fn all_problems_are_told_together() {
    let Error::BadOptions { problems } =
        RedisOptions::from_url("redis://h:0/x?tls_insecure=maybe&read_timeout_ms=0&colour=red&db=1&db=2")
            .unwrap_err()
    else {
        panic!("expected problems");
    };
    let expected = [
        "a port from 1 to 65535",
        "the database after the hosts is a whole number from 0 to 4294967295, this is `x`",
        "tls_insecure is true or false, this is `maybe`",
        "read_timeout_ms is a whole number from 1 to 86400000, this is `0`",
        "unknown parameter `colour`, there are db, op_timeout_ms",
        "db is given twice",
    ];
    assert_eq!(problems.len(), expected.len(), "{problems:?}");
    for (problem, expected) in problems.iter().zip(expected) {
        assert!(problem.contains(expected), "{problem} lacks {expected}");
    }
}

#[test]
fn what_contradicts_itself_is_refused() {
    assert!(why("redis://h?tls_ca_file=a").contains("TLS is off"));
    assert!(why("rediss://h?tls_cert_file=a").contains("go together"));
    assert!(why("rediss://h?tls_ca_file=a&tls_insecure=1").contains("choose one"));
    assert!(why("redis://h?backoff_min_ms=9&backoff_max_ms=1").contains("less than the first"));
    let mut options = read("redis://h");
    options.write_timeout = Duration::MAX;
    assert!(options.check().unwrap_err().to_string().contains("the time limit of writes"));
    let mut options = read("redis://h?spin_max_us=0");
    options.spin_max = Duration::from_millis(11);
    assert!(options.check().unwrap_err().to_string().contains("at most 10ms is allowed"));
    assert!(why("redis://h?spin_max_us=10001").contains("spin_max_us is a whole number from 0 to 10000"));
    assert!(why("redis://h/1?db=2").contains("given twice"));
    assert!(why("redis://::1").contains("[::1]:6379"));
    assert!(why("redis://h?tls_server_name=").contains("is empty"));
    assert!(why("http://h").contains("`http://` is unknown, expected one of redis://"));
    assert!(why("localhost:6379").contains("no URL of Redis"));
}

#[test]
fn a_malformed_url_never_shows_its_password() {
    let bad = [
        "redis://:topsecret/x@h",
        "redis://:top?secret@h",
        "redis://:topsecret#@h",
        "redis://u:topsecret%zz@h",
        "redis://u:topsecret",
        "redis-sentinel://h?node_password=%zztopsecret",
        "redis-sentinel://h?node_password=topsecret@x",
        "redis://topsecret@h:x",
    ];
    for url in bad {
        let message = why(url);
        assert!(!message.contains("secret"), "{url}: {message}");
    }
    assert!(why("redis://:to/p@h").contains("%2F"));
    let options = read("redis-sentinel://u:topsecret@h?master=m&node_password=topsecret");
    assert!(!format!("{options:?} {}", options.describe()).contains("secret"));
}

#[test]
fn the_environment_alone_is_enough() {
    let options = with_env(
        None,
        &[
            ("REDIS_ADDR", "cache:7000"),
            ("REDIS_USERNAME", "w"),
            ("REDIS_PASSWORD", "p@ss word"),
            ("REDIS_DB", "3"),
            ("REDIS_USE_TLS", "true"),
            ("REDIS_TLS_SERVER_NAME", "cache.internal"),
            ("REDIS_TLS_INSECURE_SKIP_VERIFY", "true"),
            ("WEKNORA_REDIS_OP_TIMEOUT_MS", "250"),
        ],
    )
    .unwrap();
    assert_eq!(options.endpoint, single("cache", 7_000));
    assert_eq!((options.login, options.db), (login(Some("w"), Some("p@ss word")), 3));
    let tls = options.tls.unwrap();
    assert_eq!((tls.server_name.as_deref(), tls.insecure), (Some("cache.internal"), true));
    assert_eq!((options.read_timeout.as_millis(), options.write_timeout.as_millis()), (250, 500));
}

#[test]
fn an_empty_variable_is_absent_and_a_bad_one_is_refused() {
    let options = with_env(None, &[("REDIS_ADDR", "h"), ("REDIS_DB", ""), ("REDIS_USERNAME", " ")]).unwrap();
    assert_eq!((options.db, options.login), (0, Login::default()));
    let bad = [("REDIS_DB", "one"), ("REDIS_USE_TLS", "yes"), ("WEKNORA_REDIS_OP_TIMEOUT_MS", "0")];
    let message = with_env(None, &bad).unwrap_err().to_string();
    for name in ["REDIS_ADDR is not set", "REDIS_DB", "REDIS_USE_TLS", "WEKNORA_REDIS_OP_TIMEOUT_MS"] {
        assert!(message.contains(name), "{message} lacks {name}");
    }
    let message = with_env(None, &[("REDIS_ADDR", "a:b:c")]).unwrap_err().to_string();
    assert!(message.contains("REDIS_ADDR: an address of IP version 6"), "{message}");
}

#[test]
fn an_address_may_be_a_url() {
    let variables = [("REDIS_ADDR", "redis-cluster://u@a,b"), ("REDIS_PASSWORD", "pw")];
    let options = with_env(None, &variables).unwrap();
    assert!(matches!(options.endpoint, Endpoint::Cluster { .. }));
    assert_eq!(options.login, login(Some("u"), Some("pw")));
}

#[test]
fn the_environment_fills_what_a_url_leaves_open() {
    let variables = [
        ("REDIS_ADDR", "elsewhere:1"),
        ("REDIS_USERNAME", "env"),
        ("REDIS_PASSWORD", "env"),
        ("REDIS_DB", "9"),
        ("REDIS_USE_TLS", "true"),
        ("WEKNORA_REDIS_OP_TIMEOUT_MS", "250"),
    ];
    let options = with_env(Some("redis://h"), &variables).unwrap();
    assert_eq!((options.endpoint.clone(), options.db), (single("h", 6_379), 9));
    assert_eq!(options.login, login(Some("env"), Some("env")));
    assert!(options.tls.is_some(), "either may ask for TLS");
    let options = with_env(Some("redis://:url@h/1?op_timeout_ms=100"), &variables).unwrap();
    assert_eq!((options.db, options.read_timeout.as_millis()), (1, 100));
    assert_eq!(options.login, login(None, Some("url")), "a password is not given another user");
    let options = with_env(Some("redis-sentinel://:guard@s?master=m"), &variables).unwrap();
    assert_eq!(options.login, login(Some("env"), Some("env")), "the data node's login is open");
    let off = [("REDIS_TLS_SERVER_NAME", "x"), ("REDIS_USE_TLS", "false")];
    assert!(with_env(Some("redis://h"), &off).unwrap().tls.is_none());
}
