package published

// The commands that users of Redis need, as docs/REDIS.md lists them: a test holds the two
// together, and others that each is needed.
var (
	// ReaderCommands are those of instances and of the commands that read.
	ReaderCommands = []string{"multi", "exec", "time", "get", "pttl", "zcard", "zscore", "zrange", "zrevrange", "hgetall", "hmget", "hlen", "xrevrange", "subscribe", "ping", "evalsha", "eval", "zadd", "zrem", "hset", "hdel", "pexpire"}
	// WriterCommands are those of aggregators.
	WriterCommands = []string{"evalsha", "eval", "multi", "exec", "time", "get", "set", "setnx", "del", "pexpire", "hget", "hmget", "hset", "hdel", "hincrby", "hgetall", "hkeys", "hlen", "zadd", "zrem", "zscore", "zcard", "zrange", "zremrangebyscore", "zremrangebyrank", "zunionstore", "xadd", "xtrim", "publish", "pttl", "xrevrange"}
	// OperatorCommands are those of who uses hotparam pin, block, allow and release, or top.
	OperatorCommands = []string{"acl|whoami", "evalsha", "eval", "multi", "exec", "time", "get", "pttl", "zcard", "zrange", "hgetall", "hmget", "hlen", "xrevrange", "hset", "hdel", "del", "pexpire", "xadd", "publish"}
	// LimiterCommands are those of instances whose rules have scope: exact or share.
	LimiterCommands = []string{"evalsha", "eval", "time", "get", "set", "del", "getrange", "setrange", "pexpire", "pttl", "zadd", "zrem", "zcard", "zscore", "zrange", "zrangebyscore", "zremrangebyscore", "zincrby", "hmget", "hset", "hlen", "hgetall", "hdel", "publish", "subscribe", "ping"}
)
