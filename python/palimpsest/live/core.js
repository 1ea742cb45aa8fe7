// The simulator in WebAssembly: one call with a request, which returns the answer. Ignored: drawing, and time.

export class Core {
  // Loads the module from its bytes, which are compressed unless a server has sent them as an encoding.
  static async of(bytes) {
    if (new Uint8Array(bytes.buffer ?? bytes, bytes.byteOffset ?? 0, 1)[0] === 0x1f) {
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
      bytes = await new Response(stream).arrayBuffer();
    }
    const { instance } = await WebAssembly.instantiate(bytes, {});
    return new Core(instance.exports);
  }

  constructor(exports) {
    this.exports = exports;
    this.failed = null;
  }

  text(at, bytes) {
    return new TextDecoder().decode(new Uint8Array(this.exports.memory.buffer, at, bytes));
  }

  // The text of the answer. Throws the message of a mistake, or of a failure of the simulator.
  ask(request) {
    if (this.failed) throw new Error(this.failed);
    const bytes = new TextEncoder().encode(JSON.stringify(request));
    const at = this.exports.request_memory(bytes.length);
    new Uint8Array(this.exports.memory.buffer, at, bytes.length).set(bytes);
    let answer;
    try {
      const length = this.exports.answer_request();
      answer = this.text(this.exports.answer_memory(), length);
    } catch (error) {
      const why = this.text(this.exports.panic_memory(), this.exports.panic_bytes());
      this.failed = `The simulator stopped: ${why || error.message}. Load the page again.`;
      throw new Error(this.failed);
    }
    if (answer.startsWith('{"error":')) throw new Error(JSON.parse(answer).error);
    return answer;
  }

  call(request) {
    return JSON.parse(this.ask(request));
  }
}
