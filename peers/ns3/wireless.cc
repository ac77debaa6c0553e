/* Floods and unicasts over 802.11 in ns-3: what Roamcast's 802.11 radios are measured beside.
 *
 *     wireless LOAD SEED
 *
 * LOAD is a file that `roamcast bench peers` writes (src/roamcast/bench/load.py says what is in it): where the nodes
 * are, who floods when, who sends a packet to whom when. The answer is one line of JSON.
 *
 * What is modelled
 *   radio     ad hoc 802.11b, every frame at 2 Mbit/s with the long preamble, or ad hoc 802.11g with OFDM alone;
 *             propagation at the speed of light; ns-3's own queue, error model and retry limits.
 *   signal    without `gain_db` statements all signals within range arrive equally strong, nothing arrives from beyond.
 *             With them, they say how strong each node arrives at each other one, and nothing else arrives.
 *   flood     the source broadcasts; whoever receives a flood for the first time broadcasts it once, after a uniform
 *             time up to the load's jitter.
 *   packet    one unicast to a neighbour, acknowledged.
 * Frames go straight to the network device: sockets, IP and ARP would cost time that the other simulators do not spend.
 *
 * Measured is everything after the load was read: building the network and running it, in seconds of processor and of
 * wall clock.
 */

#include "ns3/core-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/propagation-module.h"
#include "ns3/wifi-module.h"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

using namespace ns3;

namespace
{

constexpr uint16_t PROTOCOL = 0x88b5; // EtherType for local experiments
constexpr uint32_t ACK_BYTES = 14;
constexpr int EVERYBODY = -1;
constexpr double TX_POWER_DBM = 16.0206;    // ns-3's default
constexpr double SENSITIVITY_DBM = -82.0;   // a preamble below this is not detected, by ns-3's default
constexpr double OUT_OF_REACH_DB = 1000.0;  // loss between nodes that do not reach each other at all

struct Sending
{
    double t_s;
    int source;
    int destination; // EVERYBODY for a flood
};

/** How strong one node arrives at another. */
struct Gain
{
    uint32_t from;
    uint32_t to;
    double db; // above the weakest signal that can be received
};

struct Load
{
    double rangeM = 0;
    double durationS = 0;
    double measuredBeforeS = 0;
    double jitterS = 0;
    uint32_t payloadBytes = 0;
    std::string radio = "802.11b";
    int dataRateMbps = 2;
    int broadcastRateMbps = 2;
    std::vector<Vector> positions;
    std::vector<Gain> gains;
    std::vector<Sending> sendings;
};

/** What a frame carries, at the beginning of its payload. */
struct Content
{
    uint32_t number; // in Load::sendings
    uint32_t hops;   // frames in a row that brought it to whoever receives this one
};

[[noreturn]] void
Refuse(const std::string& why)
{
    std::cerr << "wireless: " << why << std::endl;
    std::exit(2);
}

Load
ReadLoad(const char* path)
{
    std::ifstream file(path);
    if (!file)
    {
        Refuse(std::string(path) + " cannot be read");
    }
    Load load;
    std::string line;
    while (std::getline(file, line))
    {
        std::istringstream words(line);
        std::string what;
        words >> what;
        Sending sending{0, 0, EVERYBODY};
        Vector position;
        if (what == "range_m")
        {
            words >> load.rangeM;
        }
        else if (what == "duration_s")
        {
            words >> load.durationS;
        }
        else if (what == "measured_before_s")
        {
            words >> load.measuredBeforeS;
        }
        else if (what == "jitter_s")
        {
            words >> load.jitterS;
        }
        else if (what == "payload_bytes")
        {
            words >> load.payloadBytes;
        }
        else if (what == "radio")
        {
            words >> load.radio;
        }
        else if (what == "data_rate_mbps")
        {
            words >> load.dataRateMbps;
        }
        else if (what == "broadcast_rate_mbps")
        {
            words >> load.broadcastRateMbps;
        }
        else if (what == "gain_db")
        {
            Gain gain{0, 0, 0};
            words >> gain.from >> gain.to >> gain.db;
            load.gains.push_back(gain);
        }
        else if (what == "node")
        {
            words >> position.x >> position.y;
            load.positions.push_back(position);
        }
        else if (what == "flood")
        {
            words >> sending.t_s >> sending.source;
            load.sendings.push_back(sending);
        }
        else if (what == "packet")
        {
            words >> sending.t_s >> sending.source >> sending.destination;
            load.sendings.push_back(sending);
        }
        else
        {
            Refuse("what is '" + what + "'?");
        }
        if (!words)
        {
            Refuse("cannot read '" + line + "'");
        }
    }
    if (load.payloadBytes < sizeof(Content))
    {
        Refuse("payload_bytes is too small");
    }
    return load;
}

class Network
{
  public:
    explicit Network(const Load& load)
        : m_load(load),
          m_payload(load.payloadBytes, 0)
    {
        Build();
        for (uint32_t number = 0; number < load.sendings.size(); ++number)
        {
            const Sending& sending = load.sendings[number];
            m_packets += sending.destination != EVERYBODY;
            if (sending.t_s < load.measuredBeforeS)
            {
                m_expected += sending.destination == EVERYBODY ? load.positions.size() - 1 : 1;
            }
            Simulator::Schedule(Seconds(sending.t_s), &Network::Begin, this, number);
        }
    }

    void Print(double cpuS, double wallS) const
    {
        const double delivered = static_cast<double>(m_delivered);
        std::printf("{\"version\": \"%s\", \"compiler\": \"%s\", \"cpu_s\": %.6f, \"wall_s\": %.6f, "
                    "\"transmissions\": %llu, \"reach\": %.6f, \"delay_ms_mean\": %.6f, \"hops_mean\": %.6f, "
                    "\"data_frames_per_packet\": %.6f}\n",
                    NS3_VERSION,
                    __VERSION__,
                    cpuS,
                    wallS,
                    static_cast<unsigned long long>(m_transmissions),
                    m_expected ? delivered / m_expected : 0.0,
                    m_delivered ? 1000 * m_delaySumS / delivered : 0.0,
                    m_delivered ? m_hopsSum / delivered : 0.0,
                    m_packets ? static_cast<double>(m_dataFrames) / m_packets : 0.0);
    }

  private:
    void Build()
    {
        NodeContainer nodes;
        nodes.Create(m_load.positions.size());

        MobilityHelper mobility;
        auto places = CreateObject<ListPositionAllocator>();
        for (const Vector& position : m_load.positions)
        {
            places->Add(position);
        }
        mobility.SetPositionAllocator(places);
        mobility.SetMobilityModel("ns3::ConstantPositionMobilityModel");
        mobility.Install(nodes);

        YansWifiChannelHelper channel;
        channel.SetPropagationDelay("ns3::ConstantSpeedPropagationDelayModel");
        if (m_load.gains.empty())
        {
            channel.AddPropagationLoss("ns3::RangePropagationLossModel", "MaxRange", DoubleValue(m_load.rangeM));
        }
        Ptr<YansWifiChannel> air = channel.Create();
        if (!m_load.gains.empty())
        {
            air->SetPropagationLossModel(Losses(nodes));
        }
        YansWifiPhyHelper phy;
        phy.SetChannel(air);

        WifiHelper wifi;
        const bool isOfdm = m_load.radio == "802.11g";
        wifi.SetStandard(isOfdm ? WIFI_STANDARD_80211g : WIFI_STANDARD_80211b);
        const std::string family = isOfdm ? "ErpOfdmRate" : "DsssRate";
        const StringValue data(family + std::to_string(m_load.dataRateMbps) + "Mbps");
        const StringValue broadcast(family + std::to_string(m_load.broadcastRateMbps) + "Mbps");
        wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager",
                                     "DataMode",
                                     data,
                                     "ControlMode",
                                     broadcast,
                                     "NonUnicastMode",
                                     broadcast);
        WifiMacHelper mac;
        mac.SetType("ns3::AdhocWifiMac");
        NetDeviceContainer devices = wifi.Install(phy, mac, nodes);

        m_jitter = CreateObject<UniformRandomVariable>();
        m_jitter->SetAttribute("Max", DoubleValue(m_load.jitterS));
        for (uint32_t node = 0; node < devices.GetN(); ++node)
        {
            auto device = DynamicCast<WifiNetDevice>(devices.Get(node));
            device->SetReceiveCallback(MakeCallback(&Network::Receive, this));
            device->GetPhy()->TraceConnectWithoutContext("PhyTxBegin", MakeCallback(&Network::CountFrame, this));
            m_devices.push_back(device);
            m_seen.emplace_back(m_load.sendings.size(), false);
        }
    }

    Ptr<PropagationLossModel> Losses(const NodeContainer& nodes) const
    {
        auto losses = CreateObject<MatrixPropagationLossModel>();
        losses->SetDefaultLoss(OUT_OF_REACH_DB);
        for (const Gain& gain : m_load.gains)
        {
            losses->SetLoss(nodes.Get(gain.from)->GetObject<MobilityModel>(),
                            nodes.Get(gain.to)->GetObject<MobilityModel>(),
                            TX_POWER_DBM - SENSITIVITY_DBM - gain.db,
                            false);
        }
        return losses;
    }

    void Begin(uint32_t number)
    {
        const Sending& sending = m_load.sendings[number];
        m_seen[sending.source][number] = true;
        Send(sending.source, Content{number, 1});
    }

    void Send(uint32_t node, Content content)
    {
        std::memcpy(m_payload.data(), &content, sizeof(content));
        const int destination = m_load.sendings[content.number].destination;
        const Address to =
            destination == EVERYBODY ? m_devices[node]->GetBroadcast() : m_devices[destination]->GetAddress();
        m_devices[node]->Send(Create<Packet>(m_payload.data(), m_payload.size()), to, PROTOCOL);
    }

    bool Receive(Ptr<NetDevice> device, Ptr<const Packet> packet, uint16_t, const Address&)
    {
        Content content;
        packet->CopyData(reinterpret_cast<uint8_t*>(&content), sizeof(content));
        const uint32_t node = device->GetNode()->GetId();
        const Sending& sending = m_load.sendings[content.number];
        if (m_seen[node][content.number])
        {
            return true;
        }
        m_seen[node][content.number] = true;
        if (sending.t_s < m_load.measuredBeforeS)
        {
            ++m_delivered;
            m_hopsSum += content.hops;
            m_delaySumS += Simulator::Now().GetSeconds() - sending.t_s;
        }
        if (sending.destination == EVERYBODY)
        {
            const Content repeated{content.number, content.hops + 1};
            Simulator::Schedule(Seconds(m_jitter->GetValue()), &Network::Send, this, node, repeated);
        }
        return true;
    }

    void CountFrame(Ptr<const Packet> frame, double)
    {
        ++m_transmissions;
        m_dataFrames += frame->GetSize() != ACK_BYTES;
    }

    const Load& m_load;
    std::vector<uint8_t> m_payload;
    std::vector<Ptr<WifiNetDevice>> m_devices;
    std::vector<std::vector<bool>> m_seen; // per node, by number of the sending
    Ptr<UniformRandomVariable> m_jitter;
    uint64_t m_packets = 0;
    uint64_t m_expected = 0;
    uint64_t m_delivered = 0;
    uint64_t m_transmissions = 0;
    uint64_t m_dataFrames = 0;
    double m_hopsSum = 0;
    double m_delaySumS = 0;
};

} // namespace

int
main(int argc, char* argv[])
{
    if (argc != 3)
    {
        Refuse("LOAD and SEED are needed");
    }
    const Load load = ReadLoad(argv[1]);
    RngSeedManager::SetRun(std::strtoull(argv[2], nullptr, 10));
    Simulator::SetScheduler(ObjectFactory("ns3::PriorityQueueScheduler")); // the fastest of ns-3's queues here

    const std::clock_t cpuBegan = std::clock();
    const auto wallBegan = std::chrono::steady_clock::now();
    Network network(load);
    Simulator::Stop(Seconds(load.durationS));
    Simulator::Run();
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - wallBegan;
    network.Print(static_cast<double>(std::clock() - cpuBegan) / CLOCKS_PER_SEC, wall.count());
    Simulator::Destroy();
    return 0;
}
