/* AODV end to end in ns-3: what Roamcast's AODV over the `ns3` radio is held against.
 *
 *     aodv FLOWS MOVEMENTS SEED
 *
 * FLOWS is a file that `roamcast bench aodv` writes (src/roamcast/bench/flows.py says what is in it): the radio's range,
 * who sends a packet to whom when. MOVEMENTS is an ns-2 movement file. The answer is one line of JSON.
 *
 * What is modelled
 *   radio     as in wireless.cc: ad hoc 802.11b, every frame at 2 Mbit/s with the long preamble; all signals within range
 *             arrive equally strong, nothing arrives from beyond.
 *   network   IPv4 and UDP. Every node knows everybody's hardware address, because Roamcast's frames need no ARP.
 *   routing   ns-3's AODV with its defaults, but four lost hellos instead of two before a neighbour is given up. A node
 *             that passes a request on omits its next hello, but neighbours that know the request already ignore the
 *             copy. So with two, ns-3 often gives up neighbours that are in range: on the reference layouts that
 *             triples the requests and more than doubles the delay.
 */

#include "ns3/aodv-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/propagation-module.h"
#include "ns3/wifi-module.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

using namespace ns3;

namespace
{

constexpr uint16_t DATA_PORT = 9;
constexpr uint16_t AODV_PORT = 654;
constexpr uint16_t ALLOWED_HELLO_LOSS = 4;

struct Sending
{
    double t_s;
    uint32_t source;
    uint32_t destination;
};

struct Load
{
    double rangeM = 0;
    double durationS = 0;
    double measuredBeforeS = 0;
    uint32_t payloadBytes = 0;
    uint32_t nodes = 0;
    std::vector<Sending> sendings;
};

[[noreturn]] void
Refuse(const std::string& why)
{
    std::cerr << "aodv: " << why << std::endl;
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
        else if (what == "payload_bytes")
        {
            words >> load.payloadBytes;
        }
        else if (what == "nodes")
        {
            words >> load.nodes;
        }
        else if (what == "packet")
        {
            Sending sending{0, 0, 0};
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
    if (load.payloadBytes < sizeof(uint32_t))
    {
        Refuse("payload_bytes is too small");
    }
    return load;
}

class Network
{
  public:
    Network(const Load& load, const std::string& movements)
        : m_load(load),
          m_payload(load.payloadBytes, 0),
          m_arrived(load.sendings.size(), false)
    {
        Build(movements);
        for (uint32_t number = 0; number < load.sendings.size(); ++number)
        {
            m_expected += load.sendings[number].t_s < load.measuredBeforeS;
            Simulator::Schedule(Seconds(load.sendings[number].t_s), &Network::Send, this, number);
        }
    }

    void Print() const
    {
        const double delivered = static_cast<double>(m_delivered);
        std::printf("{\"version\": \"%s\", \"delivery\": %.6f, \"delay_ms_mean\": %.6f, \"hops_mean\": %.6f, "
                    "\"requests\": %llu, \"replies\": %llu, \"errors\": %llu, \"hellos\": %llu, "
                    "\"data_transmissions\": %llu}\n",
                    NS3_VERSION,
                    delivered / m_expected,
                    m_delivered ? 1000 * m_delaySumS / delivered : 0.0,
                    m_delivered ? m_hopsSum / delivered : 0.0,
                    static_cast<unsigned long long>(m_requests),
                    static_cast<unsigned long long>(m_replies),
                    static_cast<unsigned long long>(m_errors),
                    static_cast<unsigned long long>(m_hellos),
                    static_cast<unsigned long long>(m_data));
    }

  private:
    void Build(const std::string& movements)
    {
        NodeContainer nodes;
        nodes.Create(m_load.nodes);
        Ns2MobilityHelper(movements).Install(nodes.Begin(), nodes.End());

        YansWifiChannelHelper channel;
        channel.SetPropagationDelay("ns3::ConstantSpeedPropagationDelayModel");
        channel.AddPropagationLoss("ns3::RangePropagationLossModel", "MaxRange", DoubleValue(m_load.rangeM));
        YansWifiPhyHelper phy;
        phy.SetChannel(channel.Create());
        WifiHelper wifi;
        wifi.SetStandard(WIFI_STANDARD_80211b);
        const StringValue mode("DsssRate2Mbps");
        wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager",
                                     "DataMode",
                                     mode,
                                     "ControlMode",
                                     mode,
                                     "NonUnicastMode",
                                     mode);
        WifiMacHelper mac;
        mac.SetType("ns3::AdhocWifiMac");
        NetDeviceContainer devices = wifi.Install(phy, mac, nodes);

        InternetStackHelper internet;
        AodvHelper routing;
        routing.Set("AllowedHelloLoss", UintegerValue(ALLOWED_HELLO_LOSS));
        internet.SetRoutingHelper(routing);
        internet.Install(nodes);
        Ipv4AddressHelper addresses;
        addresses.SetBase("10.0.0.0", "255.255.0.0");
        m_interfaces = addresses.Assign(devices);
        KnowNeighbours(nodes, devices);
        Listen(nodes);
    }

    /** Fills every ARP cache with everybody, for good. */
    void KnowNeighbours(const NodeContainer& nodes, const NetDeviceContainer& devices)
    {
        for (uint32_t node = 0; node < nodes.GetN(); ++node)
        {
            auto ip = nodes.Get(node)->GetObject<Ipv4L3Protocol>();
            auto interface = ip->GetInterface(ip->GetInterfaceForDevice(devices.Get(node)));
            auto cache = interface->GetArpCache();
            for (uint32_t other = 0; other < nodes.GetN(); ++other)
            {
                if (other != node)
                {
                    auto* entry = cache->Add(m_interfaces.GetAddress(other));
                    entry->SetMacAddress(devices.Get(other)->GetAddress());
                    entry->MarkPermanent();
                }
            }
        }
    }

    void Listen(const NodeContainer& nodes)
    {
        for (uint32_t node = 0; node < nodes.GetN(); ++node)
        {
            auto socket = Socket::CreateSocket(nodes.Get(node), UdpSocketFactory::GetTypeId());
            socket->Bind(InetSocketAddress(Ipv4Address::GetAny(), DATA_PORT));
            socket->SetIpRecvTtl(true);
            socket->SetRecvCallback(MakeCallback(&Network::Receive, this));
            m_sockets.push_back(socket);
            nodes.Get(node)->GetObject<Ipv4L3Protocol>()->TraceConnectWithoutContext(
                "Tx",
                MakeCallback(&Network::Count, this));
        }
    }

    void Send(uint32_t number)
    {
        const Sending& sending = m_load.sendings[number];
        std::memcpy(m_payload.data(), &number, sizeof(number));
        const InetSocketAddress to(m_interfaces.GetAddress(sending.destination), DATA_PORT);
        m_sockets[sending.source]->SendTo(Create<Packet>(m_payload.data(), m_payload.size()), 0, to);
    }

    void Receive(Ptr<Socket> socket)
    {
        Address from;
        while (auto packet = socket->RecvFrom(from))
        {
            uint32_t number = 0;
            packet->CopyData(reinterpret_cast<uint8_t*>(&number), sizeof(number));
            const Sending& sending = m_load.sendings[number];
            if (m_arrived[number] || sending.t_s >= m_load.measuredBeforeS)
            {
                continue;
            }
            m_arrived[number] = true;
            SocketIpTtlTag ttl;
            packet->RemovePacketTag(ttl);
            ++m_delivered;
            m_hopsSum += 64 - ttl.GetTtl() + 1;
            m_delaySumS += Simulator::Now().GetSeconds() - sending.t_s;
        }
    }

    /** Counts what IP hands to the link, by what it is. */
    void Count(Ptr<const Packet> sent, Ptr<Ipv4>, uint32_t interface)
    {
        if (interface == 0)
        {
            return; // the loopback, where packets wait for routes
        }
        auto packet = sent->Copy();
        Ipv4Header ip;
        UdpHeader udp;
        packet->RemoveHeader(ip);
        packet->RemoveHeader(udp);
        if (udp.GetDestinationPort() != AODV_PORT)
        {
            ++m_data;
            return;
        }
        aodv::TypeHeader type;
        packet->RemoveHeader(type);
        m_requests += type.Get() == aodv::AODVTYPE_RREQ;
        m_errors += type.Get() == aodv::AODVTYPE_RERR;
        if (type.Get() == aodv::AODVTYPE_RREP)
        {
            const bool hello = ip.GetDestination().IsBroadcast() ||
                               ip.GetDestination().IsSubnetDirectedBroadcast(Ipv4Mask("255.255.0.0"));
            ++(hello ? m_hellos : m_replies);
        }
    }

    const Load& m_load;
    std::vector<uint8_t> m_payload;
    std::vector<bool> m_arrived;
    std::vector<Ptr<Socket>> m_sockets;
    Ipv4InterfaceContainer m_interfaces;
    uint64_t m_expected = 0;
    uint64_t m_delivered = 0;
    uint64_t m_requests = 0;
    uint64_t m_replies = 0;
    uint64_t m_errors = 0;
    uint64_t m_hellos = 0;
    uint64_t m_data = 0;
    double m_hopsSum = 0;
    double m_delaySumS = 0;
};

} // namespace

int
main(int argc, char* argv[])
{
    if (argc != 4)
    {
        Refuse("FLOWS, MOVEMENTS and SEED are needed");
    }
    const Load load = ReadLoad(argv[1]);
    RngSeedManager::SetRun(std::strtoull(argv[3], nullptr, 10));
    Network network(load, argv[2]);
    Simulator::Stop(Seconds(load.durationS));
    Simulator::Run();
    network.Print();
    Simulator::Destroy();
    return 0;
}
