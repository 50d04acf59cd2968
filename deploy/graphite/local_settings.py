# graphite-web for counts of hot parameters (graphite-web 1.1; Debian:
# /etc/graphite/local_settings.py). The paths are Debian's.

# Signs sessions of people who log in to draw graphs. Put 50 random letters here.
SECRET_KEY = 'change-me'

TIME_ZONE = 'UTC'
CONF_DIR = '/etc/graphite'
LOG_DIR = '/var/log/graphite'
STORAGE_DIR = '/var/lib/graphite'
WHISPER_DIR = '/var/lib/graphite/whisper'
DATABASES = {
    'default': {
        'ENGINE': 'django.db.backends.sqlite3',
        'NAME': STORAGE_DIR + '/graphite.db',
    }
}

# Points that carbon has not written yet are asked for here; it is carbon's
# CACHE_QUERY_PORT. Without it a second would be seen when its file is written.
CARBONLINK_HOSTS = ['127.0.0.1:7002']
CARBONLINK_TIMEOUT = 1.0

# Nothing is remembered from one question to the next. By default an answer is kept
# for a minute, and the list of keys for five: a new key would become hot after that.
# (With no memcached, as here, Django keeps nothing anyway; so it stays when one is
# added for the graphs.)
FIND_CACHE_DURATION = 0
DEFAULT_CACHE_DURATION = 0

# In seconds. A question for 10,000 keys takes some: longer than the 3 and 6 that are
# given by default where the disk is slow. hotparam itself waits graphite.timeout.
FIND_TIMEOUT = 10
FETCH_TIMEOUT = 10

# A question that not every part of a cluster answered is refused (500). By default the
# rest is given as if it were all, and keys would seem to have cooled.
STORE_FAIL_ON_ERROR = True

# A line for each question and key is of no use.
LOG_ROTATION = False
LOG_INFO_PERFORMANCE = False
