package hotkeys

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/redisconfig"
)

// memberLife is how long a member is listed after its last heartbeat.
const memberLife = 10 * time.Second

// membersPerRead bounds the number of members that one call reads: 0.5 MB.
const membersPerRead = 500

// ListMembers returns the heartbeats of the instances and aggregators of a namespace, aggregators
// first, by name. Heard is on the local clock, whatever its offset from Redis's. It does not list
// members that may not write heartbeats, or whose version has none. At most
// [published.MaxMembers] are read. The deadline is that of ctx.
func ListMembers(ctx context.Context, client redis.UniversalClient, namespace string) ([]published.Member, error) {
	members, err := ListFormerMembers(ctx, client, namespace)
	return slices.DeleteFunc(members, func(m published.Member) bool { return m.Left }), err
}

// ListFormerMembers is [ListMembers] with the last heartbeats of those that left a short time ago.
func ListFormerMembers(ctx context.Context, client redis.UniversalClient, namespace string) (members []published.Member, err error) {
	defer wrapError(&err, "list members")
	if err := redisconfig.Namespace(namespace); err != nil {
		return nil, err
	}
	layout := published.NewLayout(namespace)
	heard, clock, err := readHeard(ctx, client, layout.Members, -published.MaxMembers)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	ages := make(map[string]time.Duration)
	var fields []string
	for _, z := range heard {
		name, _ := z.Member.(string)
		if age := ageOf(z, clock); age < memberLife {
			ages[name] = age
			fields = append(fields, name)
		}
	}
	for part := range slices.Chunk(fields, membersPerRead) {
		infos, err := client.HMGet(ctx, layout.MembersInfo, part...).Result()
		switch {
		case isWrongType(err):
			return nil, ErrForeign
		case err != nil && !errors.Is(err, redis.Nil):
			return nil, err
		}
		for i, field := range part {
			info, _ := infos[i].(string)
			if m, err := published.ParseMember(field, []byte(info)); err == nil {
				m.Heard = now.Add(-ages[field])
				members = append(members, m)
			}
		}
	}
	slices.SortFunc(members, func(a, b published.Member) int {
		return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Name, b.Name), a.Started.Compare(b.Started))
	})
	return members, nil
}
