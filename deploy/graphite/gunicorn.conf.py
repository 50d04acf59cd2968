# Serves graphite-web (gunicorn 20.1): gunicorn -c gunicorn.conf.py

# graphite-web lets anybody ask. For other machines, put a proxy with TLS and a
# password before it (hotparam: graphite.user, graphite.password_file).
bind = '127.0.0.1:8080'
wsgi_app = 'graphite.wsgi:application'
raw_env = ['GRAPHITE_SETTINGS_MODULE=local_settings']

# hotparam asks one question a second. A second worker, so that somebody's graph of a
# year does not hold it up; threads, so that the connection is kept between questions.
workers = 2
worker_class = 'gthread'
threads = 2
keepalive = 15

# graphite-web is loaded once, before the workers are forked: they share its memory.
preload_app = True

# In seconds; a worker that is silent for so long is replaced.
timeout = 30
