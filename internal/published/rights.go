package published

// The commands that Redis users need, as docs/REDIS.md lists them. One test compares the two
// lists, and others prove that each command is needed.
var (
	// ReaderCommands are the commands of instances and of the programs that read.
	ReaderCommands = []string{"multi", "exec", "time", "get", "pttl", "zcard", "zscore", "zrange", "zrevrange", "hgetall", "hmget", "hlen", "xrevrange", "subscribe", "ping", "evalsha", "eval", "zadd", "zrem", "hset", "hdel", "pexpire"}
	// WriterCommands are the commands of aggregators.
	WriterCommands = []string{"evalsha", "eval", "multi", "exec", "time", "get", "set", "setnx", "del", "pexpire", "hget", "hmget", "hset", "hdel", "hincrby", "hgetall", "hkeys", "hlen", "zadd", "zrem", "zscore", "zcard", "zrange", "zremrangebyscore", "zremrangebyrank", "zunionstore", "xadd", "xtrim", "publish", "pttl", "xrevrange"}
	// OperatorCommands are the commands of users of hotparam pin, block, allow, release and top.
	OperatorCommands = []string{"acl|whoami", "evalsha", "eval", "multi", "exec", "time", "get", "pttl", "zcard", "zrange", "hgetall", "hmget", "hlen", "xrevrange", "hset", "hdel", "del", "pexpire", "xadd", "publish"}
	// LimiterCommands are the commands of instances whose rules have scope: share, fleet or exact.
	LimiterCommands = []string{"evalsha", "eval", "time", "get", "set", "del", "getrange", "setrange", "pexpire", "pttl", "zadd", "zrem", "zcard", "zscore", "zrange", "zrangebyscore", "zremrangebyscore", "zincrby", "hmget", "hset", "hlen", "hgetall", "hdel", "publish", "subscribe", "ping"}
	// HistorianCommands are the commands of aggregators that keep a history, and HistoryCommands those
	// of programs that read it.
	HistorianCommands = []string{"info", "evalsha", "eval", "hget", "hset", "hdel", "hmget", "hgetall", "hkeys", "hstrlen", "hincrby", "pexpire"}
	HistoryCommands   = []string{"hmget", "hgetall", "hkeys"}
	// InvalidatorCommands are the commands by which instances whose rules have on_hot invalidate
	// each other's answers.
	InvalidatorCommands = []string{"xadd", "pexpire", "publish", "del"}
)
