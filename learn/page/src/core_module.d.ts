// The module that Emscripten writes; the build gives its path.

declare module "core" {
  interface CoreModule {
    ccall(name: "lesson_answer", result: "string", types: ["string"], values: [string]): string;
  }
  export default function createCore(options: { wasmBinary: Uint8Array }): Promise<CoreModule>;
}

declare module "*.hpp" {
  const text: string;
  export default text;
}
