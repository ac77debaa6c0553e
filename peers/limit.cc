// The limit: floods over 802.11 in plain C++, as fast as they get without cleverness.
//
//     limit LOAD SEED
//
// LOAD is a file that `roamcast bench peers` writes (src/roamcast/bench/load.py says what is in it); this program knows
// floods only. The answer is one line of JSON.
//
// The radio is that of simpy_flood.py: DCF access with slots that freeze while the air is busy, half duplex, receivers
// that lock on the first frame they hear, bit errors where frames overlap. There is nothing else: no protocol behind a
// contract, no encoded messages, no trace, no mobility. Events wait in a binary heap; a station that may not send yet
// when its turn comes goes back into it.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <fstream>
#include <map>
#include <queue>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr double SLOT_S = 20e-6, SIFS_S = 10e-6, DIFS_S = SIFS_S + 2 * SLOT_S, PREAMBLE_S = 192e-6, RATE_BPS = 2e6;
constexpr double EIFS_S = SIFS_S + PREAMBLE_S + 14 * 8 / 1e6 + DIFS_S;
constexpr double SENSE_S = 1e-6;   // a transmission is sensed this long after it began
constexpr double DETECT_S = 4e-6;  // a frame that begins within this time of another spoils its preamble
constexpr double ROUNDING_S = 1e-9;
constexpr int HEADER_BYTES = 36, WINDOW = 31;

struct Frame {
    int flood = 0, hops = 0;
    double start_s = 0;
};

struct Station {
    std::vector<Station*> hearers;
    std::deque<Frame> queue;
    Frame sending;                  // while it is on the air
    bool waiting = false;           // it has an entry in the heap
    bool committed = false;         // too late to sense what has just begun
    int backoff = 0;                // slots left
    double busy_until_s = -1;       // its air is full until then
    double defer_s = DIFS_S;        // the silence to keep after that
    double listened_s = 0;          // it has listened for DIFS by then
    const Station* lock = nullptr;  // whose frame it is receiving
    double noisy_until_s = 0;       // another frame disturbs that one until then
    double survival = 1;            // the probability that it is intact so far
    std::vector<bool> seen;         // floods
};

enum class What { access, end, repeat };

struct Entry {
    double t_s;
    uint64_t number;  // entries of the same instant keep their order
    What what;
    Station* station;
    Frame frame;
    bool operator<(const Entry& other) const {
        return t_s > other.t_s || (t_s == other.t_s && number > other.number);
    }
};

class Network {
  public:
    Network(const std::map<std::string, double>& settings, const std::vector<std::pair<double, double>>& positions_m,
            const std::vector<std::pair<double, int>>& floods, unsigned seed)
        : random_(seed), stations_(positions_m.size()), jitter_s_(settings.at("jitter_s")),
          measured_before_s_(settings.at("measured_before_s")) {
        airtime_s_ = PREAMBLE_S + (settings.at("payload_bytes") + HEADER_BYTES) * 8 / RATE_BPS;
        const double range_m = settings.at("range_m");
        for (size_t a = 0; a < stations_.size(); ++a) {
            stations_[a].seen.assign(floods.size(), false);
            for (size_t b = 0; b < stations_.size(); ++b) {
                const double x_m = positions_m[a].first - positions_m[b].first;
                const double y_m = positions_m[a].second - positions_m[b].second;
                if (a != b && x_m * x_m + y_m * y_m <= range_m * range_m) stations_[a].hearers.push_back(&stations_[b]);
            }
        }
        for (size_t flood = 0; flood < floods.size(); ++flood) {
            Station& source = stations_[static_cast<size_t>(floods[flood].second)];
            source.seen[flood] = true;
            began_s_.push_back(floods[flood].first);
            put(floods[flood].first, What::repeat, &source, Frame{static_cast<int>(flood), 1, 0});
        }
        const double energy = 22e6 / RATE_BPS, root = std::sqrt(2.0);  // equal powers: bit errors of DQPSK
        const double errors = (root + 1) / std::sqrt(8 * M_PI * root) / std::sqrt(energy) * std::exp(-(2 - root) * energy);
        log_bit_survival_ = std::log1p(-errors);
    }

    void run(double until_s) {
        while (!heap_.empty() && heap_.top().t_s <= until_s) {
            const Entry entry = heap_.top();
            heap_.pop();
            now_s_ = entry.t_s;
            if (entry.what == What::access) access(*entry.station);
            else if (entry.what == What::end) end(*entry.station);
            else send(*entry.station, entry.frame);
        }
    }

    uint64_t transmissions = 0, deliveries = 0, hops = 0;
    double delay_s = 0;

  private:
    void put(double t_s, What what, Station* station, const Frame& frame = {}) {
        heap_.push(Entry{t_s, ++entries_, what, station, frame});
    }

    double draw() { return static_cast<double>(random_() >> 11) * 0x1.0p-53; }

    void draw_backoff(Station& station) { station.backoff = static_cast<int>(draw() * (WINDOW + 1)); }

    void send(Station& station, const Frame& frame) {
        station.queue.push_back(frame);
        if (station.queue.size() == 1) request_access(station);
    }

    void request_access(Station& station) {
        if (station.busy_until_s > now_s_ && !station.backoff) draw_backoff(station);
        station.waiting = true;
        station.listened_s = now_s_ + DIFS_S;
        put(std::max(due_s(station), station.listened_s), What::access, &station);
    }

    static double due_s(const Station& station) {
        return station.busy_until_s + station.defer_s + station.backoff * SLOT_S;
    }

    void access(Station& station) {
        if (!station.committed && due_s(station) > now_s_ + ROUNDING_S) {
            put(due_s(station), What::access, &station);
            return;
        }
        station.committed = station.waiting = false;
        station.backoff = 0;
        begin(station);
    }

    void begin(Station& sender) {
        ++transmissions;
        sender.sending = sender.queue.front();
        sender.sending.start_s = now_s_;
        sender.lock = nullptr;
        sender.defer_s = DIFS_S;
        const double end_s = now_s_ + airtime_s_;
        sender.busy_until_s = std::max(sender.busy_until_s, end_s);
        for (Station* station : sender.hearers) {
            if (station->busy_until_s <= now_s_) {
                freeze(*station);
                station->lock = &sender;
                station->survival = 1;
                station->noisy_until_s = 0;
            } else if (station->lock != nullptr) {
                disturb(*station, end_s);
            }
            station->busy_until_s = std::max(station->busy_until_s, end_s);
        }
        put(end_s, What::end, &sender);
    }

    // The air of a station fills: account for the slots that passed.
    void freeze(Station& station) {
        const double since_s = station.busy_until_s + station.defer_s;
        if (station.waiting && std::max(due_s(station), station.listened_s) <= now_s_ + SENSE_S) {
            station.committed = true;
        } else if (station.waiting && !station.backoff) {
            draw_backoff(station);
        } else if (now_s_ > since_s) {
            station.backoff = std::max(0, station.backoff - static_cast<int>((now_s_ - since_s) / SLOT_S + 1e-6));
        }
    }

    // Another frame begins while the station receives one: two at once destroy that one, a single one flips bits.
    void disturb(Station& station, double end_s) const {
        const double start_s = station.lock->sending.start_s;
        if (now_s_ - start_s < DETECT_S || now_s_ < station.noisy_until_s) {
            station.survival = 0;
            return;
        }
        const double until_s = std::min(end_s, start_s + airtime_s_);
        const double overlap_s = until_s - std::max(now_s_, start_s + PREAMBLE_S);
        station.noisy_until_s = end_s;
        if (overlap_s > 0) station.survival *= std::exp(log_bit_survival_ * overlap_s * RATE_BPS);
    }

    void end(Station& sender) {
        for (Station* station : sender.hearers) {
            if (station->lock != &sender) continue;
            station->lock = nullptr;
            const bool intact = station->survival == 1 || (station->survival > 0 && draw() < station->survival);
            station->defer_s = intact ? DIFS_S : EIFS_S;
            if (intact) hear(*station, sender.sending);
        }
        sender.queue.pop_front();
        draw_backoff(sender);
        if (!sender.queue.empty()) request_access(sender);
    }

    void hear(Station& station, const Frame& frame) {
        const size_t flood = static_cast<size_t>(frame.flood);
        if (station.seen[flood]) return;
        station.seen[flood] = true;
        if (began_s_[flood] < measured_before_s_) {
            ++deliveries;
            hops += static_cast<uint64_t>(frame.hops);
            delay_s += now_s_ - began_s_[flood];
        }
        put(now_s_ + draw() * jitter_s_, What::repeat, &station, Frame{frame.flood, frame.hops + 1, 0});
    }

    std::mt19937_64 random_;
    std::vector<Station> stations_;
    std::priority_queue<Entry> heap_;
    std::vector<double> began_s_;
    uint64_t entries_ = 0;
    double now_s_ = 0, jitter_s_, measured_before_s_, airtime_s_ = 0, log_bit_survival_ = 0;
};

double seconds(clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 3) return std::fprintf(stderr, "limit: LOAD SEED\n"), 2;
    std::map<std::string, double> settings;
    std::vector<std::pair<double, double>> positions_m;
    std::vector<std::pair<double, int>> floods;
    std::ifstream file(arguments[1]);
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::string what;
        double first = 0, second = 0;
        words >> what >> first;
        if (what == "node") words >> second, positions_m.emplace_back(first, second);
        else if (what == "flood") words >> second, floods.emplace_back(first, static_cast<int>(second));
        else if (what == "packet") return std::fprintf(stderr, "limit: packets are not modelled, floods only\n"), 2;
        else settings[what] = first;
    }
    const double cpu_began_s = seconds(CLOCK_PROCESS_CPUTIME_ID), wall_began_s = seconds(CLOCK_MONOTONIC);
    Network network(settings, positions_m, floods, static_cast<unsigned>(std::atoi(arguments[2])));
    network.run(settings.at("duration_s"));
    const double cpu_s = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_began_s;
    const double wall_s = seconds(CLOCK_MONOTONIC) - wall_began_s;
    const double before_s = settings.at("measured_before_s");
    const auto measured = std::count_if(floods.begin(), floods.end(), [=](auto flood) { return flood.first < before_s; });
    const double pairs = static_cast<double>(measured) * static_cast<double>(positions_m.size() - 1);
    const double got = std::max(1.0, static_cast<double>(network.deliveries));
    std::printf("{\"version\": \"gcc %s\", \"cpu_s\": %.6f, \"wall_s\": %.6f, \"transmissions\": %llu, \"reach\": %.6f, "
                "\"delay_ms_mean\": %.4f, \"hops_mean\": %.4f}\n",
                __VERSION__, cpu_s, wall_s, static_cast<unsigned long long>(network.transmissions),
                static_cast<double>(network.deliveries) / pairs, 1000 * network.delay_s / got,
                static_cast<double>(network.hops) / got);
}
