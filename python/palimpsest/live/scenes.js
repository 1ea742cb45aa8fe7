// The guided scenes: a drive, a workload, a question, an exercise with a goal, and an answer.
//
// Each drive is a preset cut down to a few blocks, so times and rules of flash are those of the preset.

const SMALL = ["ssd.channels=2", "ssd.chips_per_channel=1", "ssd.dies_per_chip=1", "ssd.planes_per_die=1",
  "part.pages_per_block=16"];
const TLC = [...SMALL, "ssd.blocks_per_plane=16", "buffer.size=64KiB", "ftl.streams=1"];

export const SPARES = ["28%", "40%", "60%", "100%"];

export const WORKLOADS = [
  ["random writes of 4 KiB", "rw=randwrite,bs=4k"],
  ["sequential writes of 64 KiB", "rw=write,bs=64k"],
  ["90 % of the writes to 10 % of the addresses", "rw=randwrite,bs=4k,random_distribution=zoned:90/10:10/90"],
  ["random reads of 4 KiB", "rw=randread,bs=4k"],
  ["half reads, half writes of 4 KiB", "rw=randrw,bs=4k"],
  ["random writes of 4 KiB, a flush after four", "rw=randwrite,bs=4k,fsync=4"],
  ["all writes to 3 % of the addresses", "rw=randwrite,bs=4k,size=3%"],
  ["a log in a circle, and a table at random",
    "name=log,rw=write,bs=16k,size=50%,plids=0,name=table,rw=randwrite,bs=4k,offset=50%,size=50%,plids=1"],
];

// A state that an exercise asks for: write amplification below a bound after some requests.
const below = (bound, requests = 800) => (model) => {
  const value = model.figures?.write_amplification;
  return model.requests >= requests && value !== null && value < bound;
};
const ratio = (model) => model.figures?.write_amplification ?? 0;

export const SCENES = [
  {
    title: "Why flash needs an FTL",
    question: "The host overwrites 4 KiB. Why does this drive rewrite a whole block?",
    text: ["Flash programs pages in order, and erases whole blocks. A page cannot be overwritten.",
      "The layer block maps whole blocks. An overwrite copies the other pages of the block to an empty block, and " +
        "erases the old one.",
      "The layer page maps each page. An overwrite goes to the next free page, and the old copy becomes stale."],
    exercise: "Step a few requests with the layer block. Then choose the layer page, and bring write " +
      "amplification below 15 in 200 requests.",
    goal: (model, state) => state.layer !== "block" && model.requests >= 200 && ratio(model) > 0 && ratio(model) < 15,
    answer: "With a map of blocks, one overwrite of 4 KiB programs most of the 16 pages of a block again. With a " +
      "map of pages, it programs one page of 16 KiB, and later some copies. The translation layer hides the erase " +
        "from the host.",
    ssd: "default", ftl: "block", layers: ["block", "page"],
    // One request at a time shows: each write is programmed before the acknowledgement.
    set: [...TLC, "buffer.ack=program", "buffer.flush=programs"], spare: "40%",
    precondition: "fill:60%",
    workload: 0, depth: 1, speed: 62,
  },
  {
    title: "Garbage collection",
    question: "Which block does the drive erase next, and what does that cost?",
    text: ["Overwrites leave stale subpages behind. Collection frees their space: it chooses a victim, copies the " +
      "valid subpages, and erases the block.",
      "The events name each victim with its valid subpages and the rule of the policy. The number with v below a " +
        "block counts valid subpages, the number with e counts erases."],
    exercise: "Play until the first victims. Compare greedy with fifo: on a new drive each, run 1,500 requests. " +
      "Bring write amplification below 1.8.",
    goal: below(1.8, 1500),
    answer: "Each valid subpage of a victim is programmed once more. Greedy takes the block with the fewest valid " +
      "subpages, so it copies least now. Fifo takes the oldest block, however full of valid data.",
    ssd: "default", ftl: "subpage", layers: ["subpage", "page"], set: TLC, spare: "40%",
    precondition: "fill:90%",
    workload: 0, depth: 4, speed: 66,
  },
  {
    title: "Over-provisioning",
    question: "Why does a drive have more flash than the host sees?",
    text: ["Spare blocks let stale subpages gather before collection. With more spare space, victims hold less " +
      "valid data.",
      "Over-provisioning of 28 % means 28 % more flash than addresses."],
    exercise: "Run 1,000 requests at 28 % and at 100 %, and compare write amplification. Bring it below 1.3.",
    goal: below(1.3, 1000),
    answer: "Under random writes, the share of valid data in a victim falls as spare space grows, and write " +
      "amplification with it. The price is flash that stores nothing for the host.",
    ssd: "default", ftl: "subpage", layers: ["subpage", "page"], set: TLC, spare: "28%", precondition: "fill:100%",
    workload: 0, depth: 4, speed: 70,
  },
  {
    title: "Hot and cold data",
    question: "What changes if most writes go to a tenth of the addresses?",
    text: ["Nine of ten writes go to the first tenth of the addresses: hot data. The other data is cold.",
      "Hot data becomes stale soon. Watch which blocks become victims, and how much cold data they hold.",
      "The layer subpage writes all data to one open block of a die. The layer hotcold has another for copies."],
    exercise: "Run 5,000 requests with subpage and with hotcold, and compare write amplification. Then compare both " +
      "with random writes. Bring write amplification below 1.8 in 5,000 requests.",
    goal: below(1.8, 5000),
    answer: "Collection mixes the copies of cold data with new hot data, so subpage copies cold data again and again " +
      "(1.96 after 5,000 requests). Hotcold writes the copies to a block of their own (1.66). With random writes, " +
      "subpage has 2.09 and hotcold 1.67: copies are colder than new data there, too.",
    ssd: "default", ftl: "subpage", layers: ["subpage", "hotcold", "page"],
    set: [...SMALL, "ssd.blocks_per_plane=20", "buffer.size=64KiB", "ftl.streams=1"],
    spare: "40%", precondition: "fill:100%", workload: 2, depth: 4, speed: 70, hot: 0.1,
  },
  {
    title: "MGA: writes that share a page",
    question: "A page holds 8 KiB, the host writes 4 KiB. Where does the rest of the page go?",
    text: ["Each write must be programmed before it is acknowledged, so no buffer gathers them.",
      "The layer page reads the other half, and programs a whole page. MGA programs the free half of an earlier " +
        "page: SLC allows several programs of a page. A mark beside a page shows the second program."],
    exercise: "Step requests with mga, and find a page with two programs. Then compare with page: bring write " +
      "amplification below 1.5 in 300 requests.",
    goal: below(1.5, 300),
    answer: "MGA maps subpages where writes are small, so two writes share a page that the host did not write " +
      "together. The layer page programs 8 KiB for each write of 4 KiB.",
    ssd: "mga-8k", ftl: "mga", layers: ["mga", "page", "subpage", "sector-log"],
    set: [...SMALL, "ssd.blocks_per_plane=16"], spare: "100%", precondition: "none", workload: 0, depth: 1, speed: 58,
  },
  {
    title: "LLH: the second write",
    question: "Can flash be written twice before an erase?",
    text: ["MLC stores two pages in a row of cells. LLH programs the low pages first, and closes some blocks with " +
      "the high pages still free.",
      "When the data is stale, LLH programs the low pages again with a write-once-memory code, which only lowers " +
        "bits. A mark beside a page shows the second write."],
    exercise: "Play until a block has marks. Compare the erases of llh and hotcold after 3,000 requests: reach fewer " +
      "than 25 for 1,000 requests. Then write 90 % to 10 % of the addresses, and compare both layers again.",
    goal: (model) => model.requests >= 3000 && model.figures?.flash.erases / model.requests < 0.025,
    answer: "Where few places are written again, 96 % of the low pages are stale when the turn of their block comes. " +
      "LLH then erases 69 blocks and hotcold 86 in 3,000 requests: 20 % fewer, the bound of the paper. With 90 % of " +
      "the writes to 10 % of the addresses, 21 % of the low pages are stale and can be reused. Two blocks of each " +
      "die wait with free high pages, of five spare blocks. So LLH copies more, and erases 220 blocks against 184.",
    ssd: "llh-16g", ftl: "llh", layers: ["llh", "hotcold"],
    set: [...SMALL, "ssd.blocks_per_plane=24", "buffer.size=64KiB"],
    spare: "28%", precondition: "fill:100%", workload: 6, depth: 8, speed: 76, hot: 0.03,
  },
  {
    title: "SPREAD: words of a page",
    question: "The host reads 4 KiB. Must the drive read a page of 16 KiB?",
    text: ["A page consists of words, each with a code of its own. SPREAD senses and transfers only the words " +
      "that the host wants.",
      "The layer page-fgm senses and transfers whole pages. The layer dma-fgm senses whole pages and transfers " +
        "words. The layer spftl senses and transfers words."],
    exercise: "Compare the read latency of page-fgm, dma-fgm and spftl over 300 requests. Bring the mean below 90 " +
      "µs.",
    goal: (model) => model.requests >= 300 && (model.figures?.latency_ns?.read?.mean ?? 1e9) < 90e3,
    answer: "A part of a page is sensed faster than the page (45 µs for two words, 99 µs for eight), and fewer " +
      "bytes cross the bus. Both shorten the queues of dies and channels.",
    ssd: "spread-16g", ftl: "page-fgm", layers: ["page-fgm", "dma-fgm", "spftl"],
    set: [...SMALL, "ssd.blocks_per_plane=16"], spare: "40%", precondition: "fill:100%", workload: 3, depth: 1,
    speed: 40,
  },
  {
    title: "The file system's channels",
    question: "Who should choose the channel of a write: the drive or the file system?",
    text: ["The co-designed file system updates out of place, knows which channel is idle, and erases blocks " +
      "whose data it has moved. The layer below then needs a map of blocks only.",
      "The layer fs-page is the same file system above a page map, which chooses channels in turn and collects " +
        "garbage a second time."],
    exercise: "Compare fs-page and codesign on 400 requests each: the latency and the queues of the four channels. " +
      "Bring the mean latency of writes below 1.8 ms.",
    goal: (model) => model.requests >= 400 && (model.figures?.latency_ns?.write?.mean ?? 1e9) < 1.8e6,
    answer: "Both write the same data and records. The file system of codesign knows the load of each channel, and " +
      "sends each write where the queue is short. The map of fs-page takes the channels in turn.",
    ssd: "codesign-8ch", ftl: "fs-page", layers: ["fs-page", "codesign", "page"],
    set: ["ssd.channels=4", "ssd.chips_per_channel=1", "ssd.dies_per_chip=1", "ssd.planes_per_die=1",
      "part.pages_per_block=16", "ssd.blocks_per_plane=32"],
    spare: "200%", spares: ["200%", "300%"], precondition: "none", workload: 5, depth: 8, speed: 66,
  },
  {
    title: "Placement handles",
    question: "The host knows which data dies together. What may the drive do with this knowledge?",
    text: ["One job writes a log in a circle, another updates a table at random. Each names a handle of Flexible " +
      "Data Placement (FDP).",
      "The layer subpage ignores handles, so a block holds data of both. The layer fdp-subpage keeps the data of " +
        "each handle in blocks of its own."],
    exercise: "Run 4,000 requests with each layer. Look for a victim without log data, and compare the valid " +
      "subpages of the victims. Bring write amplification below 1.15.",
    goal: below(1.15, 4000),
    answer: "The log overwrites itself in order, so its blocks are stale as a whole and cost no copies. In mixed " +
      "blocks, the table's valid data is copied with every block of the log (1.32 against 1.04 after 4,000 requests).",
    ssd: "default", ftl: "subpage", layers: ["subpage", "fdp-subpage"],
    set: [...SMALL, "ssd.blocks_per_plane=20", "buffer.size=64KiB", "ftl.streams=1", "fdp.handles=2",
      "fdp.isolation=persistent"],
    spare: "40%", precondition: "none", workload: 7, depth: 4, speed: 70, jobs: ["log", "table"],
  },
];
