// netron_open.mjs NETRON_FOLDER FILE...: opens each file as Netron does; prints its format and node count.
import * as fs from 'node:fs';
import * as path from 'node:path';
import {pathToFileURL} from 'node:url';

const [folder, ...files] = process.argv.slice(2);
globalThis.window ??= {};
const load = (name) => import(pathToFileURL(path.join(folder, name)).href);
const base = await load('base.js');
const view = await load('view.js');

// What Netron's application provides for its parsers.
const host = {
  environment: () => undefined,
  exception: (error) => { throw error; },
  event: () => {},
  require: (id) => load(`${id.replace('./', '')}.js`),
  asset: async (file) => fs.readFileSync(path.join(folder, file), 'utf-8'),
  fetch: async (file) => { throw new Error(`no file ${file}`); },
  request: async (file, encoding, root) => {
    const data = fs.readFileSync(path.join(root ?? folder, file));
    return encoding ? data.toString(encoding) : new base.BinaryStream(data);
  },
};
const service = new view.ModelFactoryService(host);
await service.import();
for (const file of files) {
  const stream = new base.BinaryStream(new Uint8Array(fs.readFileSync(file)));
  const context = {identifier: path.basename(file), stream, require: host.require, asset: host.asset,
                   fetch: host.fetch, request: host.request, exception: host.exception};
  const model = await service.open(context);
  const nodes = model.modules.reduce((sum, graph) => sum + graph.nodes.length, 0);
  console.log(`${path.basename(file)}: ${model.format}, ${nodes} nodes`);
}
