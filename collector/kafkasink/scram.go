package kafkasink

import (
	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"
)

// scramClient is one exchange of SCRAM, as sarama wants it.
type scramClient struct {
	hash scram.HashGeneratorFcn
	*scram.ClientConversation
}

func newScram(hash scram.HashGeneratorFcn) func() sarama.SCRAMClient {
	return func() sarama.SCRAMClient { return &scramClient{hash: hash} }
}

// Begin begins the exchange.
func (c *scramClient) Begin(user, password, authzID string) error {
	client, err := c.hash.NewClient(user, password, authzID)
	if err != nil {
		return err
	}
	c.ClientConversation = client.NewConversation()
	return nil
}
