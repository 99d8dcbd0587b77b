// The engine in a thread of its own: answers the requests of engine.js.
import {loadModule, requests} from './engine.js';

let module = null;

self.onmessage = async ({data: {id, kind, args}}) => {
  try {
    if (kind === 'load') {
      module = await loadModule(args);
      self.postMessage({id});
    } else {
      self.postMessage({id, result: requests[kind](module, args)});
    }
  } catch (error) {
    self.postMessage({id, error: {type: error.type ?? 'Error', message: error.message}});
  }
};
