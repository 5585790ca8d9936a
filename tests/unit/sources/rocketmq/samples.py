"""Bodies of answers as our protocol notes show them, cut parts left out."""

from pathlib import Path

from planner.sources.rocketmq import codec

FIXTURES = Path(__file__).parent / "fixtures"
VERSIONS = ("4.9.7", "5.5.0")


def recorded(version: str, name: str) -> codec.Command:
    """Return an answer that a real server of ``version`` sent."""
    return codec.decode(recorded_frame(version, name)[4:])


def recorded_frame(version: str, name: str) -> bytes:
    """Return the frame of an answer that a real server of ``version`` sent, length included."""
    return (FIXTURES / version / f"{name}.frame").read_bytes()


CLUSTER_INFO = (
    b'{"brokerAddrTable":{"broker-b":{"brokerAddrs":{0:"127.0.0.1:20911"},"brokerName":"broker-b",'
    b'"cluster":"DefaultCluster"},"broker-a":{"brokerAddrs":{0:"127.0.0.1:10911"},"brokerName":"broker-a",'
    b'"cluster":"DefaultCluster"}},"clusterAddrTable":{"DefaultCluster":["broker-b","broker-a"]}}'
)
ROUTE = (
    b'{"brokerDatas":[{"brokerAddrs":{0:"127.0.0.1:20911"},"brokerName":"broker-b","cluster":"DefaultCluster"},'
    b'{"brokerAddrs":{0:"127.0.0.1:10911"},"brokerName":"broker-a","cluster":"DefaultCluster"}],'
    b'"filterServerTable":{},"queueDatas":[{"brokerName":"broker-b","perm":6,"readQueueNums":4,"topicSysFlag":0,'
    b'"writeQueueNums":4},{"brokerName":"broker-a","perm":6,"readQueueNums":4,"topicSysFlag":0,"writeQueueNums":4}]}'
)
MEMBERS = b'{"consumerIdList":["127.0.0.1@c3","127.0.0.1@c2","127.0.0.1@c1"]}'
CONNECTIONS = (
    b'{"connectionSet":[{"clientAddr":"127.0.0.1:41284","clientId":"127.0.0.1@c1","language":"JAVA","version":409}],'
    b'"consumeFromWhere":"CONSUME_FROM_FIRST_OFFSET","consumeType":"CONSUME_PASSIVELY","messageModel":"CLUSTERING",'
    b'"subscriptionTable":{"TopicB":{"classFilterMode":false,"codeSet":[],"expressionType":"TAG","subString":"*",'
    b'"subVersion":1795234287729,"tagsSet":[],"topic":"TopicB"},"%RETRY%GroupA":{"subString":"*"}}}'
)
CONSUME_STATS = (
    b'{"consumeTps":2.1,"offsetTable":{{"brokerName":"broker-a","queueId":6,"topic":"TopicB"}:{"brokerOffset":6,'
    b'"consumerOffset":6,"lastTimestamp":1795234288626},{"brokerName":"broker-a","queueId":0,"topic":"%RETRY%GroupA"}:'
    b'{"brokerOffset":0,"consumerOffset":0,"lastTimestamp":0}}}'
)
CONSUME_STATS_51 = (
    b'{"consumeTps":2.1,"offsetTable":{{"brokerName":"broker-a","queueId":6,"topic":"TopicB"}:{"brokerOffset":16,'
    b'"consumerOffset":6,"lastTimestamp":1795234288626,"pullOffset":15}}}'
)
NO_STATS = b'{"consumeTps":0.0,"offsetTable":{}}'
RUNNING_INFO = (
    b'{"mqPopTable":{{"brokerName":"broker-a","queueId":-1,"topic":"TopicA"}:{"droped":false,"lastPopTimestamp":0,'
    b'"waitAckCount":0}},"mqTable":{{"brokerName":"broker-a","queueId":0,"topic":"TopicA"}:{"cachedMsgCount":0,'
    b'"cachedMsgMaxOffset":0,"cachedMsgMinOffset":0,"cachedMsgSizeInMiB":0,"commitOffset":13,"droped":false,'
    b'"lastConsumeTimestamp":1795234288566,"lastLockTimestamp":1795234287530,"lastPullTimestamp":1795234328068,'
    b'"locked":true,"transactionMsgCount":0,"transactionMsgMaxOffset":0,"transactionMsgMinOffset":0,'
    b'"tryUnlockTimes":0},{"brokerName":"broker-b","queueId":3,"topic":"TopicA"}:{"commitOffset":13,"droped":true}},'
    b'"properties":{"allocateMessageQueueStrategy":'
    b'"org.apache.rocketmq.client.consumer.rebalance.AllocateMessageQueueAveragely@398eed13",'
    b'"PROP_CONSUMEORDERLY":"false","PROP_CONSUME_TYPE":"CONSUME_PASSIVELY","PROP_CLIENT_VERSION":"V4_9_8",'
    b'"PROP_CONSUMER_START_TIMESTAMP":"1795234286722","PROP_NAMESERVER_ADDR":"127.0.0.1:9876;",'
    b'"PROP_THREADPOOL_CORE_SIZE":"20","messageModel":"CLUSTERING","consumerGroup":"GroupA","consumeThreadMin":"20",'
    b'"pullBatchSize":"32"},"statusTable":{"TopicA":{"consumeFailedMsgs":0,"consumeFailedTPS":0.0,"consumeOKTPS":0.78,'
    b'"consumeRT":1.179,"pullRT":6.67,"pullTPS":0.78}},"subscriptionSet":[{"classFilterMode":false,"codeSet":[],'
    b'"expressionType":"TAG","subString":"*","subVersion":1795234287680,"tagsSet":[],"topic":"TopicA"}],'
    b'"userConsumerInfo":{}}'
)
OTHERS = {
    206: b'{"topicList":["RMQ_SYS_TRANS_HALF_TOPIC","BenchmarkTest","TBW102","%RETRY%GroupA","broker-b","broker-a"]}',
    202: b'{"offsetTable":{{"brokerName":"broker-a","queueId":3,"topic":"TopicA"}:{"lastUpdateTimestamp":1795234288407,'
    b'"maxOffset":13,"minOffset":0}},"topicPutTps":2.5}',
    300: b'{"groupList":["GroupA"]}',
    201: b'{"dataVersion":{"counter":1,"timestamp":1795234271293},"subscriptionGroupTable":{"GroupA":{"brokerId":0,'
    b'"consumeBroadcastEnable":false,"consumeEnable":true,"consumeFromMinEnable":false,"groupName":"GroupA",'
    b'"notifyConsumerIdsChangedEnable":true,"retryMaxTimes":16,"retryQueueNums":1,"whichBrokerWhenConsumeSlowly":1}}}',
    43: b'{"offsetTable":{"%RETRY%GroupA@GroupA":{0:0},"TopicB@GroupA":{0:6,1:7,2:7,3:6,4:6,5:6,6:6,7:6},'
    b'"TopicA@GroupA":{0:13,1:13,2:13,3:13}}}',
    317: b'{"brokerAddr":"127.0.0.1:10911","consumeStatsList":[{"SELF_TEST_C_GROUP":[]},{"GroupA":[{"consumeTps":1.06,'
    b'"offsetTable":{{"brokerName":"broker-a","queueId":6,"topic":"TopicB"}:{"brokerOffset":6,"consumerOffset":6,'
    b'"lastTimestamp":1795234288626}}},{"consumeTps":1.04,"offsetTable":{}}]}],"totalDiff":0}',
    315: b'{"statsDay":{"avgpt":0.0,"sum":0,"tps":0.0},"statsHour":{"avgpt":0.0,"sum":0,"tps":0.0},'
    b'"statsMinute":{"avgpt":3.25,"sum":52,"tps":1.04}}',
    28: b'{"table":{"brokerVersionDesc":"V4_9_8","brokerVersion":"409","putTps":"0.0 1.699263652417286 ",'
    b'"runtime":"[ 0 days, 0 hours, 2 minutes, 57 seconds ]"}}',
    223: b'{"consumerTable":{"127.0.0.1@c1":{{"brokerName":"broker-a","queueId":1,"topic":"TopicA"}:13},'
    b'"127.0.0.1@c3":{}},"messageQueueTable":{}}',
    400: b'{"messageQueueAssignments":[{"messageQueue":{"brokerName":"broker-a","queueId":-1,"topic":"TopicA"},'
    b'"mode":"POP"}]}',
}
