#!/usr/bin/env bash
# A real Redmine on 127.0.0.1 for the tests, from Debian's packages. As root; may be repeated; asks nothing.
#
#   up.sh up       installs what is missing, makes and seeds the instance, starts it, returns when it answers
#   up.sh down     stops it (data stays)
#   up.sh reset    the data as seeded; with SQLite under the running server, 0.1 s
#   up.sh sql TEXT changes the data behind the server's back (SQLite): times, settings
#   up.sh status   exit code 0 when it answers
#   up.sh remove   stops it and deletes the instance
#
# Environment: DB=sqlite|pgsql, INSTANCE (letters and digits), PORT, FORMATTING=common_mark|textile.
# What a test must know (address, keys, ids) stands in /var/lib/redmine/<INSTANCE>/data/facts.json.
#
# SQLite gets one thread: its busy wait keeps the interpreter's lock, so that a second writer starves the first. One
# thread answers one request after the other, and never shows what two at once do; DB=pgsql does, with four threads.
set -euo pipefail

DB=${DB:-sqlite}
case $DB in
    sqlite) INSTANCE=${INSTANCE:-leadsman} PORT=${PORT:-3899} threads=1 ;;
    pgsql) INSTANCE=${INSTANCE:-leadsmanpg} PORT=${PORT:-3898} threads=4 ;;
    *) echo "DB is sqlite or pgsql, not $DB" >&2; exit 2 ;;
esac
FORMATTING=${FORMATTING:-common_mark}
[[ $INSTANCE =~ ^[a-z][a-z0-9]*$ && $INSTANCE != default ]] || { echo "no name for an instance: $INSTANCE" >&2; exit 2; }

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
app=/usr/share/redmine
etc=/etc/redmine/$INSTANCE
data=/var/lib/redmine/$INSTANCE/data
cluster=$data/cluster
sockets=$data/sockets
pidfile=$data/puma.pid

# The whole of Redmine runs as www-data: one log or cache file of root's breaks it. The environment is built anew,
# since bundler obeys variables that a CI sets; times are kept in the server's own zone, so that is UTC.
www() {
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME="$data" LANG=C.UTF-8 TZ=UTC RAILS_ENV=production \
        REDMINE_INSTANCE="$INSTANCE" REDMINE_LANG=en SCHEMA=/dev/null MALLOC_ARENA_MAX=2 \
        PORT="$PORT" FORMATTING="$FORMATTING" FACTS="$data/facts.json" \
        setpriv --reuid=www-data --regid=www-data --init-groups -- "$@"
}

postgres() {
    local bin
    bin=$(find /usr/lib/postgresql -path '*/bin' -maxdepth 2 | sort -V | tail -n 1)
    env -i PATH="$bin:/usr/bin:/bin" LANG=C.UTF-8 PGHOST="$sockets" PGUSER=postgres \
        setpriv --reuid=postgres --regid=postgres --init-groups -- "$@"
}

packages() {
    local wanted=(redmine redmine-sqlite puma ruby-sqlite3 curl) missing=() one
    [[ $DB == pgsql ]] && wanted+=(redmine-pgsql postgresql)
    for one in "${wanted[@]}"; do
        dpkg-query -W -f='${db:Status-Status}' "$one" 2>/dev/null | grep -qx installed || missing+=("$one")
    done
    ((${#missing[@]})) || return 0
    # Without these answers the package makes an instance of its own first. They can't be given where it was purged.
    debconf-set-selections <<<'redmine redmine/instances/default/dbconfig-install boolean false
redmine redmine/current-instances string default' || true
    if [[ ! -d /etc/postgresql-common ]]; then # our cluster is a private one
        mkdir -p /etc/postgresql-common
        echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf
    fi
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends "${missing[@]}" </dev/null >/dev/null
}

database_up() {
    [[ $DB == pgsql ]] || return 0
    if [[ ! -s $cluster/PG_VERSION ]]; then
        install -d -o postgres -g postgres -m 700 "$cluster"
        install -d -o postgres -g postgres -m 755 "$sockets" # www-data must reach it
        postgres initdb -D "$cluster" -A trust --no-sync -E UTF8 --locale=C.UTF-8 >/dev/null
        printf '%s\n' "listen_addresses = ''" "unix_socket_directories = '$sockets'" 'fsync = off' \
            'synchronous_commit = off' 'full_page_writes = off' "timezone = 'UTC'" >>"$cluster/postgresql.conf"
    fi
    postgres pg_ctl -D "$cluster" status >/dev/null && return
    postgres pg_ctl -D "$cluster" -l "$cluster/log" -w start </dev/null >/dev/null
}

database_down() {
    [[ -s $cluster/PG_VERSION ]] || return 0
    postgres pg_ctl -D "$cluster" -m fast -w stop >/dev/null || true
}

settings() {
    if [[ $DB == pgsql ]]; then
        printf '  %s\n' 'adapter: postgresql' "host: $sockets" 'username: redmine' 'database: redmine' 'encoding: utf8'
    else
        printf '  %s\n' 'adapter: sqlite3' "database: $data/live.sqlite3" 'timeout: 2000'
    fi
    echo "  pool: $((threads + 2))"
}

# SQLite's own copying: it waits for writers, and takes along what still lies in the write-ahead log.
copy() { # FROM TO [SQL afterwards]
    www ruby -rsqlite3 - "$@" <<'RUBY'
from, to = ARGV.first(2).map { |path| SQLite3::Database.new(path) }
to.busy_timeout(5000)
backup = SQLite3::Backup.new(to, 'main', from, 'main')
100.times { break if backup.step(-1) == SQLite3::Constants::ErrorCode::DONE; sleep 0.05 }
abort 'the copy is not whole' unless backup.remaining.zero?
backup.finish
to.execute_batch(ARGV[2]) if ARGV[2]
RUBY
}

instance() {
    "$app/bin/redmine-instances" create "$INSTANCE"
    chown www-data:www-data "/var/lib/redmine/$INSTANCE"
    install -d -o www-data -g www-data "$data"
    [[ -s $etc/secret_key.txt ]] || head -c 32 /dev/urandom | sha256sum | cut -c1-32 >"$etc/secret_key.txt"
    { echo production:; settings; } >"$etc/database.yml"
    chown root:www-data "$etc"/{secret_key.txt,database.yml}
    chmod 640 "$etc"/{secret_key.txt,database.yml}
    database_up
    local stamp
    stamp=$({ echo "$DB $PORT $FORMATTING"; cat "$here/seed.rb"; dpkg-query -W redmine; } | sha256sum)
    [[ $(cat "$data/stamp" 2>/dev/null) == "$stamp" ]] && return
    server_down
    rm -f "$data"/*.sqlite3* "$data/stamp"
    if [[ $DB == pgsql ]]; then
        postgres psql -q -c 'DROP DATABASE IF EXISTS redmine' -c 'DROP DATABASE IF EXISTS seeded' 2>/dev/null
        postgres createuser redmine 2>/dev/null || true
        postgres createdb -O redmine redmine
    fi
    install -o www-data "$here/seed.rb" "$data/seed.rb" # it may stand where www-data can't read
    (cd "$app" && www bundle exec rake db:migrate && www bundle exec rails runner "$data/seed.rb") \
        >"$data/seed.log" 2>&1 || { tail -n 20 "$data/seed.log" >&2; return 1; }
    if [[ $DB == pgsql ]]; then postgres createdb -T redmine seeded; else copy "$data/live.sqlite3" "$data/seeded.sqlite3"; fi
    echo "$stamp" >"$data/stamp"
}

running() { # the server's pid
    local pid
    pid=$(cat "$pidfile" 2>/dev/null) && tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -q puma && echo "$pid"
}

answers() { curl -sf -m 5 -o /dev/null "http://127.0.0.1:$PORT/issue_statuses.json"; }

server_up() {
    if running >/dev/null; then # busy is not down: others may be using it
        for _ in {1..12}; do answers && return; done
    fi
    server_down
    # A session, output and input of its own: a server that holds CI's pipe keeps CI from ending, and so does the shell
    # that waits for it.
    (cd "$app" && www setsid sh -c 'echo $$ >"$0"; exec puma -e production -b "tcp://127.0.0.1:$1" -t "$2:$2" -w 0 config.ru' \
        "$pidfile" "$PORT" "$threads") </dev/null >"$data/puma.log" 2>&1 &
    for _ in {1..600}; do
        answers && return
        sleep 0.1
    done
    tail -n 20 "$data/puma.log" >&2
    return 1
}

server_down() {
    local pid
    if pid=$(running); then
        kill "$pid"
        timeout 15 tail --pid="$pid" -f /dev/null || kill -KILL "$pid"
    fi
    rm -f "$pidfile"
}

case ${1:-} in
    up) packages; instance; server_up; echo "http://127.0.0.1:$PORT" ;;
    down) server_down; database_down ;;
    reset)
        if [[ $DB == pgsql ]]; then
            server_down
            postgres dropdb redmine && postgres createdb -O redmine -T seeded redmine
            server_up
        else
            # Redmine keeps its settings in memory until one is younger than that.
            copy "$data/seeded.sqlite3" "$data/live.sqlite3" "UPDATE settings SET updated_on = datetime('now', '+1 second')"
        fi
        ;;
    sql) www ruby -rsqlite3 -e 'db = SQLite3::Database.new(ARGV[0]); db.busy_timeout(5000); db.execute_batch(ARGV[1])' \
        "$data/live.sqlite3" "$2" ;;
    status) running >/dev/null && answers ;;
    remove) server_down; database_down; rm -rf "/var/lib/redmine/$INSTANCE" "$etc" "/var/"{log,cache}"/redmine/$INSTANCE" ;;
    *) sed -n '2,16s/^# \?//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
